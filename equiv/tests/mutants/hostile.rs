//! Whatever is walked, the walk ends, takes no memory without measure, and does not panic: kernels
//! with lines lost, moved and doubled, operands and opcodes exchanged; and kernels made to be slow.

use std::{fs, path::PathBuf, time::Instant};

use bitstable_equiv::{Launch, fuzz::equiv_never_panics, signature};
use bitstable_ptx::syntax::parse;
use proptest::{collection::vec, prelude::*, sample::Index};

use crate::mutants::{
    change::{change, entry},
    random::Random,
};

/// Kernels that are changed: small ones, and such as speak to memory in every way PTX knows.
const SEEDS: [&str; 14] = [
    "equiv/tests/kernels/ptx/sum_rows.ptx",
    "equiv/tests/kernels/ptx/matmul.ptx",
    "equiv/tests/kernels/ptx/sum_bounded.ptx",
    "equiv/tests/kernels/ptx/cumulate_rows.ptx",
    "equiv/tests/kernels/ptx/sum_chained.ptx",
    "ptx/tests/programs/warp.ptx",
    "ptx/tests/programs/barriers.ptx",
    "ptx/tests/programs/values.ptx",
    "ptx/tests/programs/control.ptx",
    "ptx/tests/programs/between.ptx",
    "ptx/tests/programs/faults.ptx",
    "ptx/tests/programs/mma.ptx",
    "ptx/tests/programs/speaking.ptx",
    "ptx/tests/corpus/atomics.sm_90.ptx",
];
/// Seconds that one text may take, in a build without optimisation.
const SECONDS: u64 = 60;

fn seed(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// One change of a text.
#[derive(Clone, Debug)]
enum Edit {
    Delete(Index),
    Double(Index, Index),
    /// Two operands of a line.
    Swap(Index, Index, Index),
    /// A number of a line.
    Number(Index, usize),
    /// The opcode of one line for another, and an operand.
    Opcode(Index, Index),
    Operand(Index, Index, Index),
}

const NUMBERS: [&str; 12] =
    ["0", "1", "-1", "3", "8", "31", "32", "255", "4096", "0x7fffffff", "0x80000000", "1048576"];

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        at().prop_map(Edit::Delete),
        (at(), at()).prop_map(|(a, b)| Edit::Double(a, b)),
        (at(), at(), at()).prop_map(|(a, b, c)| Edit::Swap(a, b, c)),
        (at(), 0..NUMBERS.len()).prop_map(|(a, n)| Edit::Number(a, n)),
        (at(), at()).prop_map(|(a, b)| Edit::Opcode(a, b)),
        (at(), at(), at()).prop_map(|(a, b, c)| Edit::Operand(a, b, c)),
    ]
}

/// Opcode and operands of a line that is one instruction.
fn instruction(line: &str) -> Option<(&str, Vec<&str>)> {
    let text = line.split("//").next()?.trim().strip_suffix(';')?;
    let (opcode, operands) = text.split_once(char::is_whitespace)?;
    let like = opcode.starts_with(|c: char| c.is_ascii_lowercase());
    like.then(|| (opcode, operands.split(", ").map(str::trim).collect()))
}

fn apply(lines: &mut [String], edit: &Edit) {
    let all: Vec<usize> =
        (0..lines.len()).filter(|&at| instruction(&lines[at]).is_some()).collect();
    if all.is_empty() {
        return;
    }
    let pick = |index: &Index| all[index.index(all.len())];
    let join = |opcode: &str, operands: &[&str]| format!("{opcode} {};", operands.join(", "));
    let (at, line) = match edit {
        Edit::Delete(a) => (pick(a), String::new()),
        Edit::Double(a, b) => (pick(b), format!("{}\n{}", lines[pick(a)], lines[pick(b)])),
        Edit::Swap(a, b, c) => {
            let (opcode, mut operands) = instruction(&lines[pick(a)]).unwrap();
            let (b, c) = (b.index(operands.len()), c.index(operands.len()));
            operands.swap(b, c);
            (pick(a), join(opcode, &operands))
        }
        Edit::Number(a, number) => {
            let (opcode, mut operands) = instruction(&lines[pick(a)]).unwrap();
            *operands.last_mut().unwrap() = NUMBERS[*number];
            (pick(a), join(opcode, &operands))
        }
        Edit::Opcode(a, b) => {
            let (opcode, _) = instruction(&lines[pick(b)]).unwrap();
            let (_, operands) = instruction(&lines[pick(a)]).unwrap();
            (pick(a), join(opcode, &operands))
        }
        Edit::Operand(a, b, c) => {
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
fn the_seeds_themselves_are_walked() {
    for name in SEEDS {
        equiv_never_panics(seed(name).as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn changed_texts_are_walked_to_an_end(
        name in proptest::sample::select(&SEEDS[..]),
        edits in vec(edit(), 1..4),
    ) {
        let mut lines: Vec<String> = seed(name).lines().map(str::to_owned).collect();
        edits.iter().for_each(|edit| apply(&mut lines, edit));
        let begun = Instant::now();
        equiv_never_panics(lines.join("\n").as_bytes());
        prop_assert!(begun.elapsed().as_secs() < SECONDS, "too slow");
    }
}

/// Modules that no text gives, several changes deep.
#[test]
fn changed_modules_are_walked_to_an_end() {
    const SEED: u64 = 3;
    let mut random = Random::new(SEED);
    for round in 0..120 {
        let name = SEEDS[random.below(5)];
        let mut module = parse(&seed(name)).unwrap();
        for _ in 0..1 + random.below(6) {
            let body = entry(&mut module).unwrap().clone();
            let Some(made) = change(&body, &mut random) else { break };
            module = made.apply(&module);
        }
        let begun = Instant::now();
        let walked = signature(&module, None, &Launch::default());
        assert!(begun.elapsed().as_secs() < SECONDS, "seed {SEED}, round {round}: {walked:?}");
    }
}

fn kernel(threads: u32, lines: &str) -> String {
    format!(
        ".version 8.7\n.target sm_80\n.address_size 64\n.shared .align 16 .b8 s[65536];\n
         .visible .entry k(.param .u64 x, .param .u64 o, .param .u32 n) .reqntid {threads} {{
         .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<8>;
         ld.param.u64 %d0, [x]; ld.param.u64 %d1, [o]; ld.param.u32 %r0, [n];
         mov.u32 %r1, %tid.x; mov.u32 %r7, 0;
         {lines} ret; }}"
    )
}

/// Why a kernel is not followed, and how soon that was clear.
fn unfollowed(text: &str) -> String {
    let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let begun = Instant::now();
    let told = signature(&module, None, &Launch::default());
    assert!(begun.elapsed().as_secs() < SECONDS, "{:?}", begun.elapsed());
    match told {
        Ok(signature) => signature.obstacle.map_or("followed".into(), |found| found.what),
        Err(error) => error.to_string(),
    }
}

#[test]
fn kernels_made_to_be_slow_are_given_up() {
    let long = "longer than is followed";
    for (threads, lines, why) in [
        (1024, "L: bra L;", long),
        (1024, "L: add.u32 %r7, %r7, 1; setp.ne.u32 %p0, %r7, 0; @%p0 bra L;", long),
        (1024, "L: setp.ne.u32 %p0, %r1, 5; @%p0 bra L;", long),
        (0, "", "threads"),
        (4_000_000_000, "", "threads"),
    ] {
        let told = unfollowed(&kernel(threads, lines));
        assert!(told.contains(why), "{lines}: {told}");
    }
}

/// Each branch doubles the ways if they are not joined; each depth is one more frame.
#[test]
fn branches_upon_branches_end() {
    let side_by_side: String = (0..200)
        .map(|at| {
            format!("setp.eq.u32 %p0, %r0, {at}; @%p0 bra A{at}; add.u32 %r7, %r7, {at}; A{at}:\n")
        })
        .collect();
    let store = "cvt.rn.f32.u32 %f0, %r7; st.global.f32 [%d1], %f0;";
    assert_eq!(unfollowed(&kernel(32, &format!("{side_by_side} {store}"))), "followed");
    let (mut inward, mut outward) = (String::new(), String::new());
    for at in 0..2000 {
        inward += &format!("setp.eq.u32 %p0, %r0, {at}; @%p0 bra A{at};\n");
        outward = format!("add.u32 %r7, %r7, {at}; A{at}:\n{outward}");
    }
    let told = unfollowed(&kernel(32, &format!("{inward} {outward} {store}")));
    assert!(told.contains("deeper"), "{told}");
}

/// Twice the kernel, twice the work: no more than three times as long, measured where that is long
/// enough to be measured.
#[test]
fn a_long_kernel_takes_as_long_as_it_is() {
    let lines = |count: usize| -> String {
        let one = |at: usize| format!("add.rn.f32 %f{}, %f{}, %f1;\n", at % 7, (at + 3) % 7);
        format!(
            "ld.global.f32 %f0, [%d0]; ld.global.f32 %f1, [%d0+4]; mov.f32 %f2, %f0;
             mov.f32 %f3, %f0; mov.f32 %f4, %f0; mov.f32 %f5, %f0; mov.f32 %f6, %f0;\n{}
             st.global.f32 [%d1], %f2;",
            (0..count).map(one).collect::<String>()
        )
    };
    let measured = |count: usize| {
        let module = parse(&kernel(32, &lines(count))).unwrap();
        (0..3)
            .map(|_| {
                let begun = Instant::now();
                assert_eq!(signature(&module, None, &Launch::default()).unwrap().obstacle, None);
                begun.elapsed().as_secs_f64()
            })
            .fold(f64::INFINITY, f64::min)
    };
    let (short, long) = (measured(20_000), measured(80_000));
    assert!(long < 12.0 * short, "20,000 instructions in {short} s, 80,000 in {long} s");
}
