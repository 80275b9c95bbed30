//! Names of labels: the instruction as PTX spells it, modifiers in PTX's order.
//!
//! # Not here
//! Printing instructions (`syntax/`): these names are for readers and digests, so they leave out
//! what does not reach the value, and never change with the printer.

use super::label::{Label, Part, What};
use crate::ir::{FloatBinary, FloatMode, FloatUnary, Half, IntBinary, Op, Precision, Scalar};

pub(super) fn label(label: &Label) -> String {
    match &label.what {
        What::Operation(op) => operation(op),
        What::Complement(op) => format!("not.{}", operation(op)),
        What::Select => format!("select.{}", label.result),
        What::Output(op, number) => format!("{}#{number}", operation(op)),
        What::Bits(parts) => {
            let parts: Vec<String> = parts.iter().map(part).collect();
            format!("bits.{}[{}]", label.result, parts.join(" "))
        }
    }
}

fn part(part: &Part) -> String {
    match part {
        Part::Of { arg, byte } => format!("{arg}.{byte}"),
        Part::Number(value) => format!("{value:#04x}"),
    }
}

fn operation(op: &Op) -> String {
    float(op)
        .or_else(|| integer(op))
        .or_else(|| comparison_or_conversion(op))
        .or_else(|| collective(op))
        .unwrap_or_else(|| spelled(op))
}

fn float(op: &Op) -> Option<String> {
    if let Op::FloatUnary { op, ty, mode } = op {
        return Some(join(float_unary(*op), *mode, precision1(*op), ty));
    }
    if let Op::FloatBinary { op, ty, mode } = op {
        return Some(join(float_binary(*op), *mode, precision2(*op), ty));
    }
    if let Op::FloatTernary { op, ty, mode } = op {
        return Some(join(&format!("{}3", float_binary(*op)), *mode, "", ty));
    }
    if let Op::Fma { ty, mode } = op {
        return Some(join("fma", *mode, "", ty));
    }
    if let Op::FmaMixed { op, fused, from, mode } = op {
        let name = if *fused { "fma" } else { float_binary(*op) };
        return Some(format!("{}.{from}", join(name, *mode, "", &Scalar::F32)));
    }
    None
}

fn integer(op: &Op) -> Option<String> {
    let saturated = |sat: bool| if sat { ".sat" } else { "" };
    if let Op::IntBinary { op, ty, sat } = op {
        return Some(format!("{}{}.{ty}", int_binary(*op), saturated(*sat)));
    }
    if let Op::IntUnary { op, ty } = op {
        return Some(format!("{op}.{ty}"));
    }
    if let Op::Mad { half, ty, sat } = op {
        return Some(format!("mad.{half}{}.{ty}", saturated(*sat)));
    }
    None
}

fn comparison_or_conversion(op: &Op) -> Option<String> {
    if let Op::Cvt { to, from, round, int_round, ftz, sat, relu, satfinite } = op {
        let mut out = String::from("cvt");
        push(&mut out, round.as_ref());
        push(&mut out, int_round.as_ref());
        let flags = [(*ftz, "ftz"), (*sat, "sat"), (*relu, "relu"), (*satfinite, "satfinite")];
        flags.into_iter().for_each(|(on, name)| push(&mut out, on.then_some(&name)));
        return Some(format!("{out}.{to}.{from}"));
    }
    if let Op::Setp { cmp, ty, ftz, join } = op {
        let mut out = format!("setp.{}", lower(cmp));
        push(&mut out, join.as_ref());
        push(&mut out, ftz.then_some(&"ftz"));
        return Some(format!("{out}.{ty}"));
    }
    None
}

fn collective(op: &Op) -> Option<String> {
    if let Op::Mma { m, n, k, d, a, b, c, satfinite } = op {
        let sat = if *satfinite { ".satfinite" } else { "" };
        return Some(format!("mma.m{m}n{n}k{k}{sat}.{d}.{a}.{b}.{c}"));
    }
    if let Op::Redux { op, ty, abs, nan } = op {
        let (abs, nan) = (if *abs { ".abs" } else { "" }, if *nan { ".NaN" } else { "" });
        return Some(format!("redux.{op}{abs}{nan}.{ty}"));
    }
    if let Op::Atom { op, space, ty, noftz, .. } = op {
        let noftz = if *noftz { ".noftz" } else { "" };
        return Some(format!("atom.{space}.{op}{noftz}.{ty}"));
    }
    None
}

/// The IR's own spelling, for families without a shorter one: field names and values of the typed
/// operation, which say every modifier.
fn spelled(op: &Op) -> String {
    let text = format!("{op:?}").to_lowercase();
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn lower(value: &impl std::fmt::Display) -> String {
    value.to_string().to_lowercase()
}

fn push(out: &mut String, modifier: Option<&impl std::fmt::Display>) {
    if let Some(modifier) = modifier {
        out.push('.');
        out.push_str(&modifier.to_string());
    }
}

fn join(name: &str, mode: FloatMode, precision: &str, ty: &Scalar) -> String {
    let FloatMode { round, ftz, sat, relu, nan, abs, xorsign } = mode;
    let mut out = String::from(name);
    out.push_str(precision);
    push(&mut out, round.as_ref());
    for (on, name) in [
        (ftz, "ftz"),
        (sat, "sat"),
        (relu, "relu"),
        (nan, "NaN"),
        (xorsign, "xorsign"),
        (abs, "abs"),
    ] {
        push(&mut out, on.then_some(&name));
    }
    format!("{out}.{ty}")
}

fn suffix(precision: Precision) -> &'static str {
    match precision {
        Precision::Rounded => "",
        Precision::Approx => ".approx",
        Precision::Full => ".full",
    }
}

fn precision1(op: FloatUnary) -> &'static str {
    if let FloatUnary::Sqrt(precision) | FloatUnary::Rcp(precision) = op {
        return suffix(precision);
    }
    match op {
        FloatUnary::Abs | FloatUnary::Neg | FloatUnary::Sqrt(_) | FloatUnary::Rcp(_) => "",
        FloatUnary::Rsqrt
        | FloatUnary::Sin
        | FloatUnary::Cos
        | FloatUnary::Lg2
        | FloatUnary::Ex2
        | FloatUnary::Tanh => ".approx",
    }
}

fn precision2(op: FloatBinary) -> &'static str {
    if let FloatBinary::Div(precision) = op { suffix(precision) } else { "" }
}

fn float_unary(op: FloatUnary) -> &'static str {
    match op {
        FloatUnary::Abs => "abs",
        FloatUnary::Neg => "neg",
        FloatUnary::Sqrt(_) => "sqrt",
        FloatUnary::Rcp(_) => "rcp",
        FloatUnary::Rsqrt => "rsqrt",
        FloatUnary::Sin => "sin",
        FloatUnary::Cos => "cos",
        FloatUnary::Lg2 => "lg2",
        FloatUnary::Ex2 => "ex2",
        FloatUnary::Tanh => "tanh",
    }
}

fn float_binary(op: FloatBinary) -> &'static str {
    match op {
        FloatBinary::Add => "add",
        FloatBinary::Sub => "sub",
        FloatBinary::Mul => "mul",
        FloatBinary::Div(_) => "div",
        FloatBinary::Min => "min",
        FloatBinary::Max => "max",
        FloatBinary::Copysign => "copysign",
    }
}

fn int_binary(op: IntBinary) -> String {
    let (name, half): (&str, Option<Half>) = match op {
        IntBinary::Add => ("add", None),
        IntBinary::Sub => ("sub", None),
        IntBinary::Mul(half) => ("mul", Some(half)),
        IntBinary::Mul24(half) => ("mul24", Some(half)),
        IntBinary::Div => ("div", None),
        IntBinary::Rem => ("rem", None),
        IntBinary::Min => ("min", None),
        IntBinary::Max => ("max", None),
        IntBinary::And => ("and", None),
        IntBinary::Or => ("or", None),
        IntBinary::Xor => ("xor", None),
        IntBinary::Shl => ("shl", None),
        IntBinary::Shr => ("shr", None),
    };
    half.map_or_else(|| name.to_string(), |half| format!("{name}.{half}"))
}
