//! A kernel argument on the command line: `[NAME=]TYPE[:COUNT]=VALUE`.
//!
//! # Idea
//! | text | argument |
//! |---|---|
//! | `x=f32:1024=random:7` | a buffer of 1024 numbers, called `x` |
//! | `f32:1024` | a buffer of zeros |
//! | `x=f32:16x64` | the same of 16 · 64 elements |
//! | `i32=5`, `n=5` | a scalar; without a type, of its parameter's |
//! | `null` | a null pointer |
//! # Invariants
//! - **A1** Parsing reads no file and makes no buffer: `fill.rs` does, when it is wanted.

use std::str::FromStr;

use crate::{
    element::{ElementType, NAMES},
    failure::Failure,
    fill::Fill,
};

/// Bytes that one buffer may have.
const MOST_BYTES: usize = 8 << 30;

/// One argument, in the order of the kernel's parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    pub name: Option<String>,
    pub value: Value,
    /// As it was given, for messages.
    pub given: String,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    /// A number whose type the parameter says.
    Number(String),
    Scalar {
        ty: ElementType,
        bits: u64,
    },
    Buffer {
        ty: ElementType,
        count: usize,
        fill: Fill,
    },
}

impl Argument {
    /// A failure about this argument.
    pub fn failure(&self, reason: impl Into<String>) -> Failure {
        Failure::Argument { given: self.given.clone(), reason: reason.into() }
    }
}

impl FromStr for Argument {
    type Err = Failure;

    fn from_str(given: &str) -> Result<Self, Failure> {
        let failure = |reason| Failure::Argument { given: given.to_owned(), reason };
        let (name, rest) = named(given);
        if let Some(name) = name
            && !identifier(name)
        {
            return Err(failure(format!("`{name}` is neither a type ({NAMES}) nor a name")));
        }
        let value = value(rest).map_err(failure)?;
        Ok(Self { name: name.map(str::to_owned), value, given: given.to_owned() })
    }
}

/// The name, if there is one, and what follows it. A type is no name.
fn named(given: &str) -> (Option<&str>, &str) {
    match given.split_once('=') {
        Some((first, rest)) => {
            let word = first.split(':').next().unwrap_or(first);
            if word.parse::<ElementType>().is_ok() { (None, given) } else { (Some(first), rest) }
        }
        None => (None, given),
    }
}

fn identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|next| next.is_alphanumeric() || next == '_')
}

fn value(text: &str) -> Result<Value, String> {
    if text == "null" {
        return Ok(Value::Null);
    }
    if number(text) {
        return Ok(Value::Number(text.to_owned()));
    }
    let (head, content) = match text.split_once('=') {
        Some((head, content)) => (head, Some(content)),
        None => (text, None),
    };
    let (ty, count) = match head.split_once(':') {
        Some((ty, count)) => (ty, Some(count)),
        None => (head, None),
    };
    let ty: ElementType = ty.parse().map_err(|_| format!("`{ty}` is no type: {NAMES}"))?;
    match (count, content) {
        (Some(count), content) => {
            let count = self::count(count, ty)?;
            let fill = content.map_or(Ok(Fill::Zero), |content| Fill::parse(ty, count, content))?;
            Ok(Value::Buffer { ty, count, fill })
        }
        (None, Some(number)) => match ty.read(number) {
            Ok(bits) => Ok(Value::Scalar { ty, bits }),
            Err(reason) => Err(format!("{reason}; a buffer is {ty}:COUNT={number}")),
        },
        (None, None) => Err(format!("a scalar is {ty}=VALUE, a buffer is {ty}:COUNT")),
    }
}

/// It begins as numbers do, not as types do.
fn number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        || ["inf", "nan"].contains(&text)
}

/// Elements of a buffer: one number, or the product of several.
fn count(text: &str, ty: ElementType) -> Result<usize, String> {
    let sizes = text.split('x').map(|size| size.parse().ok());
    let count = sizes.reduce(|all: Option<usize>, size| all?.checked_mul(size?)).flatten();
    let count = count.ok_or_else(|| format!("`{text}` is no number of elements"))?;
    if count > MOST_BYTES / ty.bytes() {
        return Err(format!("{count} elements are more than the {MOST_BYTES} bytes allowed"));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Argument {
        text.parse().unwrap_or_else(|failure| panic!("{failure}"))
    }

    fn refusal(text: &str) -> String {
        text.parse::<Argument>().map_or_else(|failure| failure.to_string(), |_| String::new())
    }

    #[test]
    fn names_and_types_are_told_apart() {
        let named = parse("x=f32:4=1,2,3,4");
        assert_eq!(named.name.as_deref(), Some("x"));
        assert_eq!(parse("f32:4=1,2,3,4").value, named.value);
        assert_eq!(
            parse("n=i32=-1").value,
            Value::Scalar { ty: ElementType::I32, bits: 0xffff_ffff }
        );
        assert_eq!(parse("scratch=null").value, Value::Null);
        assert_eq!(parse("n=-5").value, Value::Number("-5".into()));
        assert_eq!(parse("f32:2x3").value, parse("x=f32:6").value);
        assert_eq!(parse("null").name, None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(refusal("f31:4=0").contains("`f31:4` is neither a type"));
        assert!(refusal("x=f31:4=0").contains("`f31` is no type"));
        assert!(refusal("f32:99999999999999999999").contains("is no number of elements"));
        assert!(refusal("f64:9999999999x9").contains("more than the"));
        assert!(refusal("f32").contains("a scalar is f32=VALUE"));
        assert!(refusal("i32=iota").contains("a buffer is i32:COUNT=iota"));
        assert!(refusal("f32:-1=0").contains("`-1` is no number of elements"));
        assert!(refusal("f32:3=1,2").contains("2 numbers for 3 elements"));
    }
}
