//! No text panics the parser, makes it slow, or makes it take memory that the text does not.

use std::{fs, path::PathBuf, time::Instant};

use bitstable_ptx::syntax::{ErrorKind, fuzz::parse_never_panics, parse};
use proptest::{collection::vec, prelude::*, sample::Index};

const HEAD: &str = ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k() {\n";

/// Texts that are small enough to be mutated many times.
const SEEDS: [&str; 5] = [
    "assembly.sm_90.ptx",
    "calling.sm_86.ptx",
    "casting.sm_75.ptx",
    "e5m2.sm_89.ptx",
    "waiting.sm_90.ptx",
];

fn seed(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Words to put into a text: each means something in some place.
#[rustfmt::skip]
const WORDS: [&str; 40] = [
    ";", ",", "{", "}", "(", ")", "[", "]", ":", "|", "!", "@", "-", "+", "<", ">", "=", ".f32", ".b64",
    ".reg .b32 t;", ".reg .b64 %r<9>;", "{ .reg .b16 %r1;", "%r1", "%p1", "%rd1", "_", "0", "-1",
    "0f3F800000", "add", ".rn", "mov.b32 %r1, %r2;", "ret;", "L:", "bra L;", ".param .b32 x;",
    ".func f();", "global_smem", "\"", "/*",
];

#[derive(Debug, Clone)]
enum Edit {
    Insert(Index, usize),
    Delete(Index, u8),
    Repeat(Index, u8),
    Replace(Index, u8),
    Cut(Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    let place = || any::<Index>();
    prop_oneof![
        6 => (place(), 0..WORDS.len()).prop_map(|(at, word)| Edit::Insert(at, word)),
        3 => (place(), any::<u8>()).prop_map(|(at, length)| Edit::Delete(at, length)),
        2 => (place(), any::<u8>()).prop_map(|(at, length)| Edit::Repeat(at, length)),
        2 => (place(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        1 => place().prop_map(Edit::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    if bytes.is_empty() {
        return;
    }
    let end = |at: usize, length: u8, bytes: &[u8]| (at + usize::from(length)).min(bytes.len());
    match edit {
        Edit::Insert(at, word) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, format!(" {} ", WORDS[*word]).into_bytes());
        }
        Edit::Delete(at, length) => {
            let at = at.index(bytes.len());
            let end = end(at, *length, bytes);
            bytes.drain(at..end);
        }
        Edit::Repeat(at, length) => {
            let at = at.index(bytes.len());
            let end = end(at, *length, bytes);
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        Edit::Replace(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Edit::Cut(at) => bytes.truncate(at.index(bytes.len())),
    }
}

/// Few by default; `PROPTEST_CASES` asks for more.
fn cases() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|number| number.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(200), ..ProptestConfig::default() }
}

/// Statements that make the same names mean many things.
#[rustfmt::skip]
const STATEMENTS: [&str; 24] = [
    "{", "{", "{", "}", "}", "}", ".reg .b32 a;", ".reg .b32 b, a$1;", ".reg .b64 a;",
    ".reg .b32 a<3>;", ".reg .pred a1;", ".shared .align 8 .b8 a[8];", ".param .b32 b;", "a:", "b:",
    "bra a;", "mov.b32 r, a;", "mov.b32 r, a;", "mov.b32 a, r;", "mov.b32 r, a1;", "mov.b32 r, b;",
    "mov.b32 r, a$1;", "ld.shared.b32 r, [a+4];", "call a;",
];

/// What may stand around a function with them.
const AROUND: [&str; 6] = [
    ".global .b32 a;",
    ".shared .b8 b[4];",
    ".func a() { ret; }",
    ".func (.param .b32 b) b(.param .b32 a);",
    ".visible .entry a$1(.param .b32 a) { ret; }",
    ".extern .func b;",
];

/// Statements with their braces balanced.
fn block(chosen: &[usize]) -> String {
    let (mut text, mut depth) = (".reg .b32 r;\n".to_owned(), 0_usize);
    for &at in chosen {
        if STATEMENTS[at] == "}" && depth == 0 {
            continue;
        }
        depth += usize::from(STATEMENTS[at] == "{");
        depth -= usize::from(STATEMENTS[at] == "}");
        text.push_str(STATEMENTS[at]);
        text.push('\n');
    }
    text + &"}".repeat(depth)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn names_print_back(
        before in vec(0..AROUND.len(), 0..3),
        first in vec(0..STATEMENTS.len(), 0..12),
        second in vec(0..STATEMENTS.len(), 0..4),
        after in vec(0..AROUND.len(), 0..2),
    ) {
        let around = |chosen: &[usize]| -> String {
            chosen.iter().map(|&at| format!("{}\n", AROUND[at])).collect()
        };
        let (before, after) = (around(&before), around(&after));
        let (first, second) = (block(&first), block(&second));
        parse_never_panics(
            format!(
                ".version 8.7\n.target sm_90\n.address_size 64\n{before}\
                 .entry k(.param .b32 p) {{\n{first}\nret; }}\n.func f() {{\n{second}\n}}\n{after}"
            )
            .as_bytes(),
        );
    }

    #[test]
    fn bytes_never_panic(bytes in vec(any::<u8>(), 0..2000)) {
        parse_never_panics(&bytes);
    }

    #[test]
    fn words_never_panic(words in vec(0..WORDS.len(), 0..60)) {
        let body: String = words.iter().map(|&at| format!("{} ", WORDS[at])).collect();
        parse_never_panics(format!("{HEAD}{body}}}\n").as_bytes());
    }

    #[test]
    fn mutated_kernels_never_panic(
        name in prop::sample::select(&SEEDS[..]),
        edits in vec(edit(), 1..4),
    ) {
        let mut bytes = seed(name).into_bytes();
        edits.iter().for_each(|edit| apply(&mut bytes, edit));
        parse_never_panics(&bytes);
    }
}

/// The error of a text, which must come within seconds, without optimisation, on a busy machine.
fn refused(text: &str) -> ErrorKind {
    let start = Instant::now();
    let error = parse(text).unwrap_err();
    assert!(start.elapsed().as_secs() < 20, "took {:?}", start.elapsed());
    error.kind
}

#[test]
fn nesting_is_bounded() {
    let deep = |open: &str| format!("{HEAD}{}", open.repeat(100_000));
    assert!(matches!(refused(&deep("{")), ErrorKind::TooLarge { .. }));
    for operand in ["[", "{", "!", "-", "("] {
        refused(&format!("{HEAD}.reg .b32 r;\nmov.b32 r, {};", operand.repeat(100_000)));
    }
    refused(&format!("{HEAD}.shared .b8 x{} ;", "[4294967296]".repeat(100_000)));
}

#[test]
fn long_texts_take_time_in_proportion() {
    let many = 50_000;
    // One name declared in many blocks, which all need names of their own.
    let blocks = "{ .reg .b32 t; mov.b32 t, 1; }\n".repeat(many);
    let start = Instant::now();
    let module = parse(&format!("{HEAD}{blocks}ret; }}\n")).unwrap();
    assert_eq!(module.functions[0].body.as_ref().unwrap().registers.len(), many);
    assert!(start.elapsed().as_secs() < 20, "took {:?}", start.elapsed());

    refused(&format!("{HEAD}mov{} r, r;", ".b32".repeat(many)));
    refused(&format!("{HEAD}mov.b32 {}, 1;", "r".repeat(1 << 20)));
    refused(&format!("{HEAD}wgmma.mma_async {{{}}};", "1, ".repeat(many)));
    refused(&format!("{HEAD}/*{}", "*".repeat(1 << 20)));
}

#[test]
fn a_register_range_costs_nothing() {
    let text = format!("{HEAD}.reg .b32 %r<4000000000>; mov.b32 %r3999999999, 1; ret; }}\n");
    let module = parse(&text).unwrap();
    assert_eq!(module.functions[0].body.as_ref().unwrap().registers.len(), 1);
}

#[test]
fn a_short_initialiser_costs_nothing() {
    let module = parse(&HEAD.replace(".visible", ".global .b8 x[1073741824] = {1};\n.visible"));
    assert!(matches!(module.unwrap_err().kind, ErrorKind::Truncated { .. }));
    let text = HEAD.replace(".visible", ".global .b8 x[1073741824] = {1};\n.visible") + "ret; }\n";
    assert_eq!(parse(&text).unwrap().variables[0].initial, [1]);
}
