//! The grammar that the layout attributes share: `#name<{key = value, …}>`.
//!
//! A value is a number, a truth value, a list, a dictionary or another attribute. What the keys
//! mean is not decided here (`read.rs`). Nesting is bounded before the recursive grammar runs, so
//! the stack it needs is bounded too.

use super::{EncodingError, NESTING};
use winnow::ascii::{alpha1, dec_uint, multispace0};
use winnow::combinator::{cut_err, delimited, dispatch, fail, peek, preceded, repeat, separated};
use winnow::error::{ContextError, ErrMode, FromExternalError, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::stream::Location;
use winnow::token::{any, take_while};
use winnow::{LocatingSlice, ModalResult};

/// The attributes whose fields `read.rs` understands.
const KNOWN: [&str; 7] = [
    "ttg.blocked",
    "ttg.slice",
    "ttg.linear",
    "ttg.nvidia_mma",
    "ttg.amd_mfma",
    "ttg.amd_wmma",
    "ttg.dot_op",
];

/// An attribute's name, without the `#`, and its fields.
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) fields: Dictionary,
}

/// Fields in the order of the text; a key may stand there twice.
pub(super) struct Dictionary {
    pub(super) at: usize,
    pub(super) entries: Vec<Entry>,
}

pub(super) struct Entry {
    pub(super) at: usize,
    pub(super) key: String,
    pub(super) value: Located,
}

/// A value and where it begins.
pub(super) struct Located {
    pub(super) at: usize,
    pub(super) value: Value,
}

pub(super) enum Value {
    Integer(u64),
    Word(String),
    List(Vec<Located>),
    Dictionary(Dictionary),
    Attribute(Attribute),
}

/// Reads a text that is one attribute and nothing else.
pub(super) fn attribute(text: &str) -> Result<Attribute, EncodingError> {
    bound_nesting(text)?;
    delimited(multispace0, any_attribute, multispace0)
        .parse(LocatingSlice::new(text))
        .map_err(|error| explain(error.offset(), error.inner()))
}

fn bound_nesting(text: &str) -> Result<(), EncodingError> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'{' | b'[' => depth += 1,
            b'>' | b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING {
            return Err(EncodingError::Nesting { at });
        }
    }
    Ok(())
}

fn explain(at: usize, error: &ContextError) -> EncodingError {
    if let Some(known) = error.cause().and_then(|cause| cause.downcast_ref::<EncodingError>()) {
        return known.clone();
    }
    let expected = error.context().find_map(|context| match context {
        StrContext::Expected(what) => Some(what.to_string()),
        _ => None,
    });
    EncodingError::Syntax { at, expected: expected.unwrap_or_else(|| "the end".into()) }
}

type Input<'i> = LocatingSlice<&'i str>;

fn expected(what: &'static str) -> StrContext {
    StrContext::Expected(StrContextValue::Description(what))
}

/// A punctuation mark, with the blanks around it.
fn mark<'i>(symbol: char) -> impl Parser<Input<'i>, char, ErrMode<ContextError>> {
    delimited(multispace0, symbol, multispace0)
        .context(StrContext::Expected(StrContextValue::CharLiteral(symbol)))
}

fn any_attribute(input: &mut Input<'_>) -> ModalResult<Attribute> {
    let name =
        preceded('#', take_while(1.., |c: char| c.is_ascii_alphanumeric() || "._$-".contains(c)))
            .context(expected("an attribute such as #ttg.blocked"))
            .parse_next(input)?
            .to_owned();
    if !KNOWN.contains(&name.as_str()) {
        let unknown = EncodingError::Unknown { encoding: format!("#{name}") };
        return Err(ErrMode::Cut(ContextError::from_external_error(input, unknown)));
    }
    let fields = cut_err(delimited(mark('<'), dictionary, mark('>'))).parse_next(input)?;
    Ok(Attribute { name, fields })
}

fn dictionary(input: &mut Input<'_>) -> ModalResult<Dictionary> {
    let at = input.current_token_start();
    let entries = items('{', entry, '}').parse_next(input)?;
    Ok(Dictionary { at, entries })
}

fn entry(input: &mut Input<'_>) -> ModalResult<Entry> {
    let at = input.current_token_start();
    let key = (alpha1, repeat::<_, _, (), _, _>(0.., take_while(1.., is_word)))
        .take()
        .context(expected("a field's name"))
        .parse_next(input)?
        .to_owned();
    let value = preceded(mark('='), located).parse_next(input)?;
    Ok(Entry { at, key, value })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn located(input: &mut Input<'_>) -> ModalResult<Located> {
    let at = input.current_token_start();
    let value = dispatch! { peek(any);
        '0'..='9' => dec_uint.map(Value::Integer),
        'a'..='z' => alpha1.map(|word: &str| Value::Word(word.to_owned())),
        '[' => items('[', located, ']').map(Value::List),
        '{' => dictionary.map(Value::Dictionary),
        '#' => any_attribute.map(Value::Attribute),
        _ => fail,
    }
    .context(expected("a number, `true`, `false`, a list, a dictionary or an attribute"))
    .parse_next(input)?;
    Ok(Located { at, value })
}

/// Items between brackets, with commas between them and none after the last.
fn items<'i, T>(
    open: char,
    item: fn(&mut Input<'i>) -> ModalResult<T>,
    close: char,
) -> impl Parser<Input<'i>, Vec<T>, ErrMode<ContextError>> {
    move |input: &mut Input<'i>| {
        mark(open).parse_next(input)?;
        let empty: ModalResult<char> = peek(mark(close)).parse_next(input);
        let items = match empty {
            Ok(_) => Vec::new(),
            Err(_) => separated(1.., cut_err(item), mark(',')).parse_next(input)?,
        };
        cut_err(mark(close)).parse_next(input)?;
        Ok(items)
    }
}
