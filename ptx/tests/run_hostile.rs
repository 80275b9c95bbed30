//! Whatever is run, the machine ends and does not panic: kernels with lines lost, moved and doubled,
//! operands swapped, immediates and opcodes exchanged.

use std::{fs, path::PathBuf, time::Instant};

use bitstable_ptx::{
    exec::{DecodeError, Program},
    fuzz::run_never_panics,
    syntax::parse,
};
use proptest::{collection::vec, prelude::*, sample::Index};

/// Kernels that are mutated: those of `programs/` speak to memory and to each other in every way
/// the machine knows.
const SEEDS: [&str; 10] = [
    "programs/warp.ptx",
    "programs/barriers.ptx",
    "programs/values.ptx",
    "programs/control.ptx",
    "programs/between.ptx",
    "programs/faults.ptx",
    "programs/mma.ptx",
    "programs/speaking.ptx",
    "corpus/waiting.sm_90.ptx",
    "corpus/atomics.sm_90.ptx",
];

fn seed(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// One change of a text.
#[derive(Clone, Debug)]
enum Change {
    Delete(Index),
    Double(Index, Index),
    /// Two operands of a line.
    Swap(Index, Index, Index),
    /// A number of a line.
    Number(Index, usize),
    /// The opcode of one line, and the opcode or an operand of another.
    Opcode(Index, Index),
    Operand(Index, Index, Index),
}

const NUMBERS: [&str; 12] =
    ["0", "1", "-1", "3", "8", "31", "32", "255", "4096", "0x7fffffff", "0x80000000", "1048576"];

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        2 => at().prop_map(Change::Delete),
        1 => (at(), at()).prop_map(|(a, b)| Change::Double(a, b)),
        3 => (at(), at(), at()).prop_map(|(a, b, c)| Change::Swap(a, b, c)),
        3 => (at(), 0..NUMBERS.len()).prop_map(|(a, n)| Change::Number(a, n)),
        3 => (at(), at()).prop_map(|(a, b)| Change::Opcode(a, b)),
        3 => (at(), at(), at()).prop_map(|(a, b, c)| Change::Operand(a, b, c)),
    ]
}

/// Opcode and operands of a line that is one instruction.
fn instruction(line: &str) -> Option<(&str, Vec<&str>)> {
    let text = line.split("//").next()?.trim();
    let text = text.strip_suffix(';')?;
    let (opcode, operands) = text.split_once(' ')?;
    let opcode_like = opcode.starts_with(|c: char| c.is_ascii_lowercase());
    opcode_like.then(|| (opcode, operands.split(", ").map(str::trim).collect()))
}

fn join(opcode: &str, operands: &[&str]) -> String {
    format!("    {opcode} {};", operands.join(", "))
}

fn apply(lines: &mut [String], change: &Change) {
    let instructions: Vec<usize> =
        (0..lines.len()).filter(|&at| instruction(&lines[at]).is_some()).collect();
    if instructions.is_empty() {
        return;
    }
    let pick = |index: &Index| instructions[index.index(instructions.len())];
    let (at, line) = match change {
        Change::Delete(a) => (pick(a), String::new()),
        Change::Double(a, b) => (pick(b), format!("{}\n{}", lines[pick(a)], lines[pick(b)])),
        Change::Swap(a, b, c) => {
            let (opcode, mut operands) = instruction(&lines[pick(a)]).unwrap();
            let (b, c) = (b.index(operands.len()), c.index(operands.len()));
            operands.swap(b, c);
            (pick(a), join(opcode, &operands))
        }
        Change::Number(a, number) => {
            let (opcode, mut operands) = instruction(&lines[pick(a)]).unwrap();
            let last = operands.len() - 1;
            operands[last] = NUMBERS[*number];
            (pick(a), join(opcode, &operands))
        }
        Change::Opcode(a, b) => {
            let (opcode, _) = instruction(&lines[pick(b)]).unwrap();
            let (_, operands) = instruction(&lines[pick(a)]).unwrap();
            (pick(a), join(opcode, &operands))
        }
        Change::Operand(a, b, c) => {
            let (_, from) = instruction(&lines[pick(b)]).unwrap();
            let (opcode, mut operands) = instruction(&lines[pick(a)]).unwrap();
            let place = c.index(operands.len());
            operands[place] = from[c.index(from.len())];
            (pick(a), join(opcode, &operands))
        }
    };
    lines[at] = line;
}

#[test]
fn the_seeds_themselves_run() {
    for name in SEEDS {
        let text = seed(name);
        let module = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        for kernel in module.functions.iter().filter(|function| function.entry) {
            Program::new(&module, Some(&kernel.name)).unwrap();
        }
        run_never_panics(text.as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn mutated_kernels_end_without_a_panic(
        name in proptest::sample::select(&SEEDS[..]),
        changes in vec(change(), 1..4),
    ) {
        let mut lines: Vec<String> = seed(name).lines().map(str::to_owned).collect();
        changes.iter().for_each(|change| apply(&mut lines, change));
        let begun = Instant::now();
        run_never_panics(lines.join("\n").as_bytes());
        prop_assert!(begun.elapsed().as_secs() < 20, "too slow");
    }
}

/// A text cannot ask for more memory than the machine is willing to give.
#[test]
fn declarations_without_measure_are_refused() {
    let kernel = |declarations: &str, inside: &str| {
        let head = ".version 8.7\n.target sm_90\n.address_size 64\n";
        format!("{head}{declarations}.visible .entry k() {{ {inside} ret; }}")
    };
    let many: String = (0..100).map(|at| format!(".global .b8 a{at}[100000000];\n")).collect();
    let shared: String = (0..9).map(|at| format!(".shared .b8 s{at}[200000];\n")).collect();
    for text in [
        kernel(&many, ""),
        kernel(&shared, ""),
        kernel("", &shared),
        kernel("", ".local .b8 deep[2000000];"),
    ] {
        let decoded = Program::new(&parse(&text).unwrap(), None);
        assert!(matches!(decoded, Err(DecodeError::TooLarge { .. })), "{decoded:?}");
        run_never_panics(text.as_bytes());
    }
}
