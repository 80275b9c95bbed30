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
    },
    /// Gives the operands of pinned reductions cheaper layouts.
    ReduceLayout,
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

const PASSES: &str = "pin-reduce{print-plan=true|false}, reduce-layout, shield-reduce";

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
        "reduce-layout" => without_options(name, &options, Pass::ReduceLayout),
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
    let mut remarks = Remarks::Off;
    for option in options {
        remarks = match option {
            ("print-plan", "true") => Remarks::Plans,
            ("print-plan", "false") => Remarks::Off,
            ("print-plan", value) => {
                return Err(format!("pin-reduce: print-plan is true or false, not {value}"));
            }
            (other, _) => {
                return Err(format!("pin-reduce has no option {other}; the choice is: print-plan"));
            }
        };
    }
    Ok(Pass::PinReduce { remarks })
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
        let pinned = |remarks| Pass::PinReduce { remarks };
        assert_eq!(parse("pin-reduce").unwrap(), [pinned(Remarks::Off)]);
        let two = parse("builtin.module( shield-reduce , pin-reduce{print-plan=true} )").unwrap();
        assert_eq!(two, [Pass::ShieldReduce, pinned(Remarks::Plans)]);
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
