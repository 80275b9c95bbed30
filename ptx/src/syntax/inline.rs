//! Source lines inside inline assembly.
//!
//! # Idea
//! LLVM writes a `.loc` for each line of an inline assembly text, and counts up from the line where
//! the assembly stands: the load of Triton's three-line loads is said to come from two lines below
//! the `tl.load`. The first one is right; the others are blanked, so that each instruction has the
//! line it came from.
//! # Invariants
//! - **N1** The text keeps its length and its lines, so that positions in it stay true.

use std::borrow::Cow;

const BEGIN: &str = "// begin inline asm";
const END: &str = "// end inline asm";

/// The text with the counted-up `.loc` lines of inline assembly blanked.
pub(super) fn without_counted_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(BEGIN) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len());
    let mut inside = false;
    let mut located = false;
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        if words == BEGIN || words == END {
            (inside, located) = (words == BEGIN, false);
        }
        let location = inside && words.starts_with(".loc");
        if location && located {
            let blank = |c: char| if c == '\n' { "\n" } else { &"    "[..c.len_utf8()] };
            result.extend(line.chars().map(blank));
        } else {
            result.push_str(line);
        }
        located |= location;
    }
    Cow::Owned(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_inline_assembly_have_its_line() {
        let text = "
.version 8.7
.target sm_90
.address_size 64
.file 1 \"kernel.py\"
.visible .entry kernel()
{
    .reg .b32 %r<2>;
    .loc 1 31 9
    mov.b32 %r0, 0;
    .loc 1 32 24
    // begin inline asm
    .loc 1 32 24                // kernel.py:32:24
    mov.b32 %r0, 1;
    .loc 1 33 24                // é: not one byte
    mov.b32 %r1, 2;
    // end inline asm
    .loc 1 40 5
    ret;
}
";
        let module = crate::syntax::parse(text).expect("it parses");
        let body = module.functions[0].body.as_ref().expect("it has a body");
        let lines = body.instructions.iter().map(|each| each.source.map_or(0, |s| s.line));
        assert_eq!(lines.collect::<Vec<_>>(), [31, 32, 32, 40]);
        let at = body.instructions.iter().map(|each| each.at.line).collect::<Vec<_>>();
        assert_eq!(at, [10, 14, 16, 19]);
        assert_eq!(without_counted_lines(text).len(), text.len());
    }

    #[test]
    fn other_text_is_left_alone() {
        assert!(matches!(without_counted_lines(".loc 1 2 3\n.loc 1 3 3\n"), Cow::Borrowed(_)));
    }
}
