//! The comments that mark a pinned reduction, read from PTX text.
//!
//! They are written by `passes/src/emit/mark.rs`, whose documentation says what each holds. The
//! parser of PTX drops comments; a mark and its moves are found together by their line.

/// What every mark begins with.
const SIGN: &str = "// bitstable.";

/// One mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Marker {
    /// Of the text, from 1.
    pub line: u32,
    pub pin: u32,
    /// Bits of each operand that is narrower than its register; 0: it is not.
    pub narrow: Vec<u32>,
    pub what: What,
}

/// What is marked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    Element { axis: Axis, may: May, place: Spread, open: bool },
    Combine,
    Result(Spread),
}

/// Bits of a row-major position: those below the ones along the axis, and those along it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Axis {
    pub below: u32,
    pub along: u32,
}

/// What a combine may hold beyond operations that round once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum May {
    #[default]
    Nothing,
    Fma,
    Anything,
}

/// A position in lane 0 of warp 0, and what each bit of lane and warp moves it by.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spread {
    at: u64,
    lane: Vec<u64>,
    pub warp: Vec<u64>,
}

impl Spread {
    /// The position in a lane of a warp.
    pub fn position(&self, lane: usize, warp: usize) -> u64 {
        let moved = |columns: &[u64], number: usize| {
            let bits = columns.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1);
            bits.fold(0, |position, (_, column)| position ^ column)
        };
        self.at ^ moved(&self.lane, lane) ^ moved(&self.warp, warp)
    }
}

impl Axis {
    /// A position along the axis, and the rest of it.
    pub fn split(self, position: u64) -> (u64, u64) {
        let low = position & ((1 << self.below) - 1);
        let along = position >> self.below & ((1 << self.along) - 1);
        let high = (position >> self.below >> self.along) << self.below;
        (along, high | low)
    }
}

/// All marks of a text, in its order; or the line of one that is not understood, and why.
pub fn scan(text: &str) -> Result<Vec<Marker>, (u32, String)> {
    let mut found = Vec::new();
    for (line, text) in (1u32..).zip(text.lines()) {
        let Some((_, comment)) = text.split_once(SIGN) else { continue };
        let marker = read(line, comment);
        found.push(marker.ok_or_else(|| (line, format!("the mark `{}`", comment.trim())))?);
    }
    Ok(found)
}

fn read(line: u32, comment: &str) -> Option<Marker> {
    let mut words = comment.split_ascii_whitespace();
    let kind = words.next()?;
    let fields: Vec<(&str, &str)> = words.map(|w| w.split_once('=').unwrap_or((w, ""))).collect();
    let field = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let list = |name: &str| numbers(field(name)?);
    let pin = u32::try_from(number(field("pin")?)?).ok()?;
    let narrow: Vec<u32> = list("narrow")?.iter().map(|&n| n as u32).collect();
    let spread = || {
        let (lane, warp) = (list("lane")?, list("warp")?);
        (lane.len() <= 5 && warp.len() <= 5).then_some(())?;
        Some(Spread { at: number(field("at")?)?, lane, warp })
    };
    let what = match kind {
        "element" => {
            let [below, along] = list("axis")?[..] else { return None };
            let axis = Axis { below: below as u32, along: along as u32 };
            (below < 64 && along < 64 && below + along < 64).then_some(())?;
            let may = match field("may")? {
                "none" => May::Nothing,
                "fma" => May::Fma,
                "any" => May::Anything,
                _ => return None,
            };
            What::Element { axis, may, place: spread()?, open: field("open").is_some() }
        }
        "combine" => What::Combine,
        "result" => What::Result(spread()?),
        _ => return None,
    };
    (!narrow.is_empty() && narrow.len() <= 64).then_some(Marker { line, pin, narrow, what })
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    if text.is_empty() { Some(Vec::new()) } else { text.split(',').map(number).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_exclusive_ors() {
        let text = "mov.b32 %f1, %f2; // bitstable.element pin=a narrow=0 axis=1,4 may=fma at=1 \
                    lane=2,4,8,10,0 warp=20 open";
        let [marker] = &scan(text).unwrap()[..] else { panic!("one mark") };
        assert_eq!((marker.pin, &marker.narrow[..]), (10, &[0][..]));
        let What::Element { axis, may: May::Fma, place, open: true } = &marker.what else {
            panic!("{marker:?}")
        };
        assert_eq!(place.position(5, 1), 1 ^ 2 ^ 8 ^ 0x20);
        assert_eq!(axis.split(0x2b), (5, 3), "101011: axis 0101, then 1 and 1 around it");
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_line() {
        for wrong in ["combine", "combine pin=1", "combine pin=g narrow=0", "sum pin=1 narrow=0"] {
            let (line, what) = scan(&format!("\n// bitstable.{wrong}\n")).unwrap_err();
            assert!(line == 2 && what.contains(wrong), "{line}: {what}");
        }
    }
}
