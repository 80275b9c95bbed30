//! The text of a pipeline: names of passes, with options, separated by commas.
//!
//! As mlir-opt has it: `shield-reduce,pin-reduce{print-plan=true}`, and optionally
//! `builtin.module(…)` around it.

use crate::{place::Place, refusal::Refusal, refusal::Refused};

/// One pass, with its options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pass {
    /// Lowers the pinned reductions.
    PinReduce {
        /// Whether the report holds the plans as remarks.
        remarks: Remarks,
        /// Whether the code says where the reductions' elements are.
        marking: Marking,
    },
    /// Gives the operands of pinned reductions cheaper layouts.
    ReduceLayout(Layouts),
    /// Marks the operands of pinned reductions.
    ShieldReduce,
    /// A test aid, left out of the list of choices: goes wrong in a given way.
    CrashTest(Crash),
}

/// Whether a pass says what it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remarks {
    /// It does not.
    Off,
    /// One remark for each reduction.
    Plans,
}

/// Whether the machine code is marked, for the checker of certificates. Only PTX is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marking {
    /// It is not.
    Off,
    /// Elements, combines and results are.
    On,
}

/// What `reduce-layout` may do, and whether it explains itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layouts {
    /// Which rewrites are tried.
    pub strategy: Strategy,
    /// The most registers of a thread that a converted operand may take.
    pub max_registers: u32,
    /// The most bytes of shared memory that a conversion may take.
    pub max_shared: u64,
    /// Whether the report says of every pinned reduction what was done, and why.
    pub reasons: Reasons,
}

/// Which rewrites `reduce-layout` tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// All; the cheapest is taken.
    Auto,
    /// Other names for what each place holds.
    Renumber,
    /// A conversion in front of the reduction.
    Convert,
    /// None.
    Off,
}

/// Whether `reduce-layout` says why it did what it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reasons {
    /// It does not.
    Off,
    /// One remark for each reduction.
    On,
}

/// Half of the registers that a thread can have, and what every NVIDIA target gives a kernel
/// without asking: 48 KiB, of 64 on AMD.
const LAYOUTS: Layouts = Layouts {
    strategy: Strategy::Auto,
    max_registers: 128,
    max_shared: 48 << 10,
    reasons: Reasons::Off,
};

/// A way to go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// A Rust panic.
    Panic,
    /// `abort`, as a failed assertion in C++ does.
    Abort,
    /// An invalid access.
    Segv,
    /// Recursion without an end.
    Overflow,
}

const PASSES: &str = "pin-reduce{print-plan=true|false certify=true|false}, \
     reduce-layout{strategy=auto|renumber|convert|off max-registers=N max-shared=BYTES \
     remarks=true|false}, shield-reduce";

/// Reads a pipeline.
pub fn parse(text: &str) -> Result<Vec<Pass>, Refused> {
    let refuse = |message: String| Refusal::Pipeline { message }.at(Place::default());
    let text = text.trim();
    let inside = text.strip_prefix("builtin.module(").and_then(|t| t.strip_suffix(')'));
    let passes: Result<Vec<Pass>, String> = split(inside.unwrap_or(text)).map(pass).collect();
    passes.map_err(refuse)
}

/// Splits at the commas that stand outside braces.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0u32;
    text.split(move |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
}

fn pass(text: &str) -> Result<Pass, String> {
    let (name, options) = match text.split_once('{') {
        Some((name, rest)) => {
            let options = rest.strip_suffix('}').ok_or_else(|| format!("{text} lacks a brace"))?;
            (name.trim(), options)
        }
        None => (text, ""),
    };
    let options: Vec<(&str, &str)> =
        options.split_whitespace().map(|o| o.split_once('=').unwrap_or((o, ""))).collect();
    match name {
        "pin-reduce" => pin_reduce(&options),
        "reduce-layout" => reduce_layout(&options),
        "shield-reduce" => without_options(name, &options, Pass::ShieldReduce),
        "crash-test" => crash_test(&options),
        "" => Err(format!("a pass is missing; the choices are: {PASSES}")),
        _ => Err(format!("there is no pass {name}; the choices are: {PASSES}")),
    }
}

fn without_options(name: &str, options: &[(&str, &str)], pass: Pass) -> Result<Pass, String> {
    match options.first() {
        None => Ok(pass),
        Some((option, _)) => Err(format!("{name} has no option {option}")),
    }
}

fn pin_reduce(options: &[(&str, &str)]) -> Result<Pass, String> {
    let (mut remarks, mut marking) = (Remarks::Off, Marking::Off);
    for option in options {
        match option {
            ("print-plan", "true") => remarks = Remarks::Plans,
            ("print-plan", "false") => remarks = Remarks::Off,
            ("certify", "true") => marking = Marking::On,
            ("certify", "false") => marking = Marking::Off,
            (name @ ("print-plan" | "certify"), value) => {
                return Err(format!("pin-reduce: {name} is true or false, not {value}"));
            }
            (other, _) => {
                let choices = "the choices are: print-plan, certify";
                return Err(format!("pin-reduce has no option {other}; {choices}"));
            }
        }
    }
    Ok(Pass::PinReduce { remarks, marking })
}

fn reduce_layout(options: &[(&str, &str)]) -> Result<Pass, String> {
    let mut layouts = LAYOUTS;
    for &(name, value) in options {
        let not = |expected: &str| format!("reduce-layout: {name} is {expected}, not {value:?}");
        match name {
            "strategy" => {
                layouts.strategy = match value {
                    "auto" => Strategy::Auto,
                    "renumber" => Strategy::Renumber,
                    "convert" => Strategy::Convert,
                    "off" => Strategy::Off,
                    _ => return Err(not("auto, renumber, convert or off")),
                }
            }
            "max-registers" => {
                layouts.max_registers = value.parse().map_err(|_| not("a number"))?
            }
            "max-shared" => layouts.max_shared = value.parse().map_err(|_| not("a number"))?,
            "remarks" => {
                layouts.reasons = match value {
                    "true" => Reasons::On,
                    "false" => Reasons::Off,
                    _ => return Err(not("true or false")),
                }
            }
            _ => {
                let choices = "the choices are: strategy, max-registers, max-shared, remarks";
                return Err(format!("reduce-layout has no option {name}; {choices}"));
            }
        }
    }
    Ok(Pass::ReduceLayout(layouts))
}

fn crash_test(options: &[(&str, &str)]) -> Result<Pass, String> {
    let kind = match options {
        [("kind", "panic")] => Crash::Panic,
        [("kind", "abort")] => Crash::Abort,
        [("kind", "segv")] => Crash::Segv,
        [("kind", "overflow")] => Crash::Overflow,
        _ => return Err("crash-test{kind=panic|abort|segv|overflow} is a test aid".into()),
    };
    Ok(Pass::CrashTest(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_options() {
        let pinned = |remarks| Pass::PinReduce { remarks, marking: Marking::Off };
        assert_eq!(parse("pin-reduce").unwrap(), [pinned(Remarks::Off)]);
        let two = parse("builtin.module( shield-reduce , pin-reduce{print-plan=true} )").unwrap();
        assert_eq!(two, [Pass::ShieldReduce, pinned(Remarks::Plans)]);
        let marked = Pass::PinReduce { remarks: Remarks::Off, marking: Marking::On };
        assert_eq!(parse("pin-reduce{certify=true print-plan=false}").unwrap(), [marked]);
    }

    #[test]
    fn reads_what_layouts_may_cost() {
        assert_eq!(parse("reduce-layout").unwrap(), [Pass::ReduceLayout(LAYOUTS)]);
        let text = "reduce-layout{strategy=convert max-registers=64 max-shared=1024 remarks=true}";
        let layouts = Layouts {
            strategy: Strategy::Convert,
            max_registers: 64,
            max_shared: 1024,
            reasons: Reasons::On,
        };
        assert_eq!(parse(text).unwrap(), [Pass::ReduceLayout(layouts)]);
        for (wrong, choices) in [
            ("strategy=best", "auto, renumber, convert or off, not \"best\""),
            ("max-registers=many", "a number"),
            ("max-shared=-1", "a number"),
            ("remarks", "true or false"),
            ("limit=3", "no option limit"),
        ] {
            let refused = parse(&format!("reduce-layout{{{wrong}}}")).unwrap_err();
            assert!(refused.refusal.to_string().contains(choices), "{}", refused.refusal);
        }
    }

    #[test]
    fn names_the_choices() {
        for wrong in ["", "pin", "pin-reduce,", "pin-reduce{plan=1}", "pin-reduce{print-plan=1}"] {
            let refused = parse(wrong).unwrap_err();
            let message = refused.refusal.to_string();
            assert!(message.contains("choice") || message.contains("true or false"), "{message}");
        }
        assert!(parse("pin-reduce{").is_err());
        assert!(parse("shield-reduce{a}").is_err());
    }
}
