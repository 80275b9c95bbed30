//! What kernels print: `vprintf`'s format, and the text of a failed assertion.
//!
//! # Source
//! CUDA C++ programming guide, "Formatted output": arguments are packed in local memory, each at
//! its own alignment, `float` widened to `double`.

use super::cta::Cta;

/// Characters of a text that are read at most.
const MOST: usize = 4096;

impl Cta<'_> {
    /// Formats one thread's print; both operands are local offsets of pointers.
    pub fn format(&self, warp: usize, lane: usize, format: u32, arguments: u32) -> String {
        let format = self.text(warp, lane, self.local_word(warp, lane, format));
        let mut arguments =
            Arguments { cta: self, warp, lane, at: self.local_word(warp, lane, arguments) };
        expand(&format, &mut |conversion, size| arguments.next(conversion, size))
    }

    /// `message`, where it was, and in which function: operands are local offsets.
    pub fn assertion(&self, warp: usize, lane: usize, places: [u32; 4]) -> String {
        let [message, file, line, function] = places;
        let text = |at: u32| self.text(warp, lane, self.local_word(warp, lane, at));
        let line = self.local_word(warp, lane, line) as u32;
        format!("{}:{line}: {}: assertion failed: {}", text(file), text(function), text(message))
    }

    fn local_word(&self, warp: usize, lane: usize, offset: u32) -> u64 {
        let mut raw = [0; 8];
        self.memory.local_read(warp as u32, lane, offset, &mut raw);
        u64::from_le_bytes(raw)
    }

    /// A text that ends with a zero byte, at a generic address.
    fn text(&self, warp: usize, lane: usize, address: u64) -> String {
        let mut bytes = Vec::new();
        while bytes.len() < MOST {
            let mut one = [0];
            let at = address.wrapping_add(bytes.len() as u64);
            if !self.memory.peek(self.context.memory, warp as u32, lane, at, &mut one)
                || one[0] == 0
            {
                break;
            }
            bytes.push(one[0]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Walks the packed arguments.
struct Arguments<'a, 'b> {
    cta: &'a Cta<'b>,
    warp: usize,
    lane: usize,
    at: u64,
}

impl Arguments<'_, '_> {
    fn next(&mut self, conversion: char, size: u64) -> String {
        self.at = self.at.next_multiple_of(size);
        let mut raw = [0; 8];
        let (warp, lane) = (self.warp as u32, self.lane);
        let bytes = &mut raw[..size as usize];
        self.cta.memory.peek(self.cta.context.memory, warp, lane, self.at, bytes);
        self.at = self.at.wrapping_add(size);
        let value = u64::from_le_bytes(raw);
        let signed = if size == 4 { i64::from(value as i32) } else { value as i64 };
        match conversion {
            'd' | 'i' => signed.to_string(),
            'u' => value.to_string(),
            'x' | 'p' => format!("{value:x}"),
            'X' => format!("{value:X}"),
            'o' => format!("{value:o}"),
            'c' => char::from(value as u8).to_string(),
            's' => self.cta.text(self.warp, self.lane, value),
            'e' | 'E' => format!("{:e}", f64::from_bits(value)),
            'f' | 'F' => format!("{:.6}", f64::from_bits(value)),
            _ => f64::from_bits(value).to_string(),
        }
    }
}

/// Replaces each conversion of a format by what `next(conversion, bytes)` gives.
fn expand(format: &str, next: &mut dyn FnMut(char, u64) -> String) -> String {
    let mut out = String::new();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let (mut width, mut zero, mut left, mut long, mut precision) =
            (0, false, false, false, None);
        loop {
            match rest.next() {
                Some('%') => out.push('%'),
                Some('-') => {
                    left = true;
                    continue;
                }
                Some('0') if width == 0 && precision.is_none() => {
                    zero = true;
                    continue;
                }
                Some('+' | ' ' | '#' | 'h') => continue,
                Some('l' | 'z' | 'j' | 't') => {
                    long = true;
                    continue;
                }
                Some('.') => {
                    precision = Some(0);
                    continue;
                }
                Some(digit @ '0'..='9') => {
                    let digit = digit as usize - '0' as usize;
                    let number = precision.as_mut().unwrap_or(&mut width);
                    *number = (*number * 10 + digit).min(MOST);
                    continue;
                }
                Some(conversion) => {
                    let wide = long || matches!(conversion, 'p' | 's') || is_float(conversion);
                    let text = next(conversion, if wide { 8 } else { 4 });
                    let text = match (precision, text.parse::<f64>()) {
                        (Some(digits), Ok(value)) if matches!(conversion, 'f' | 'F') => {
                            format!("{value:.digits$}")
                        }
                        _ => text,
                    };
                    out.push_str(&pad(&text, width, left, zero));
                }
                None => {}
            }
            break;
        }
    }
    out
}

fn is_float(conversion: char) -> bool {
    matches!(conversion, 'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A')
}

fn pad(text: &str, width: usize, left: bool, zero: bool) -> String {
    match (left, zero) {
        (true, _) => format!("{text:<width$}"),
        (false, false) => format!("{text:>width$}"),
        (false, true) => {
            let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
            let width = width.saturating_sub(sign.len());
            format!("{sign}{digits:0>width$}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn conversions_take_their_width_and_flags() {
        let mut asked = Vec::new();
        let text = expand("a%%b %5d|%-4u|%03d|%lx %f %s%", &mut |conversion, size| {
            asked.push((conversion, size));
            match conversion {
                'd' => "-7".into(),
                'f' => "0.5".into(),
                _ => "9".into(),
            }
        });
        assert_eq!(text, "a%b    -7|9   |-07|9 0.5 9");
        assert_eq!(asked, [('d', 4), ('u', 4), ('d', 4), ('x', 8), ('f', 8), ('s', 8)]);
    }
}
