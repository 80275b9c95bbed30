//! Names for the long types of a printed module.
//!
//! # Idea
//! A tensor's type with its layout is a hundred characters long, and the struct of a thread's
//! registers stands in the text twice for each of its own members: unnamed, the text would be
//! quadratic in them, and Triton would parse every layout anew at each use. MLIR's printer names
//! types only for dialects that it knows, and here it knows none.
//! # Invariants
//! - **N1** Strings are left alone. MLIR prints a quote inside a string as `\22`, so the text
//!   between a quote and the next is a string.
//! - **N2** A name stands for one type, and is none that the module may use.

use std::{collections::HashMap, fmt::Write};

const HEADS: [&str; 2] = ["tensor<", "!llvm.struct<"];

/// Shorter types are left as they are.
const SHORT: usize = 24;

/// The module `text` with its long types named.
pub fn named(text: &str) -> String {
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut header = String::new();
    let mut body = String::with_capacity(text.len() / 2);
    for (part, section) in text.split('"').enumerate() {
        if part > 0 {
            body.push('"');
        }
        if part % 2 == 1 {
            body.push_str(section);
            continue;
        }
        let mut rest = section;
        while let Some((before, ty, after)) = next_type(rest) {
            body.push_str(before);
            let next = names.len();
            let name = names.entry(ty).or_insert_with(|| {
                let name = format!("!bitstable_type{next}");
                // Writing to a string does not fail.
                let _ = writeln!(header, "{name} = {ty}");
                name
            });
            body.push_str(name);
            rest = after;
        }
        body.push_str(rest);
    }
    header + &body
}

/// The first long type, and what stands before and after it.
fn next_type(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + HEADS.iter().filter_map(|head| text[from..].find(head)).min()?;
        let head = HEADS.iter().find(|head| text[start..].starts_with(**head))?;
        let open = start + head.len();
        let Some(len) = closing(&text[open..]) else {
            from = open;
            continue;
        };
        let end = open + len;
        let word_before = text[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if end - start > SHORT && !word_before {
            return Some((&text[..start], &text[start..end], &text[end..]));
        }
        from = open;
    }
}

/// The length of `text` up to and with the bracket that closes one opened before it.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1usize;
    let mut previous = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if previous != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
        previous = byte;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn long_types_are_named_once() {
        let ty = "tensor<4x8xf32, #e<{p = #f<{a -> b}>}>>";
        let text = format!("x : {ty}, {ty}, tensor<4xf32>, !llvm.struct<(f32, f32, f32, f32)>");
        let expected = format!(
            "!bitstable_type0 = {ty}\n\
             !bitstable_type1 = !llvm.struct<(f32, f32, f32, f32)>\n\
             x : !bitstable_type0, !bitstable_type0, tensor<4xf32>, !bitstable_type1"
        );
        assert_eq!(named(&text), expected);
    }

    #[test]
    fn strings_are_left_alone() {
        let text =
            r#""tensor<4x8xf32, #some_encoding>" "a \22" "!llvm.struct<(f32, f32, f32, f32)>""#;
        assert_eq!(named(text), text);
    }

    #[test]
    fn what_does_not_close_is_left_alone() {
        for text in ["tensor<tensor<4x8xf32, #some_encoding", "my_tensor<4x8xf32, #some_encoding>"]
        {
            assert_eq!(named(text), text);
        }
    }
}
