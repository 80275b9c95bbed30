//! Control flow against plain Rust: divergence, loops, early exits, jump tables, calls, guards;
//! warps that are not full, and grids of three dimensions.

mod common;

use bitstable_ptx::{
    exec::{DecodeError, Program, Schedule},
    syntax::parse,
};
use common::{Kernel, Numbers, Stream, schedules, shape};

const CONTROL: &str = include_str!("programs/control.ptx");

/// What is in a result before a kernel runs.
const UNTOUCHED: u32 = 0xdead_beef;

/// Runs `entry(out, in)`, one word a thread, under several schedules; all must be clean and give
/// `expected(thread, value)`, or leave the word alone where that is `None`.
#[track_caller]
fn check(
    entry: &str,
    ctas: u32,
    threads: u32,
    given: &[u32],
    expected: impl Fn(u32, u32) -> Option<u32>,
) {
    let kernel = Kernel::new(CONTROL, entry);
    let total = (ctas * threads) as usize;
    assert_eq!(given.len(), total);
    let expected: Vec<u32> =
        (0..).zip(given).map(|(i, v)| expected(i, *v).unwrap_or(UNTOUCHED)).collect();
    for schedule in schedules(3) {
        let mut stream = Stream::default();
        let out = stream.buffer("out", &vec![UNTOUCHED; total]);
        let input = stream.buffer("in", given);
        let over = shape(ctas, threads).schedule(schedule);
        stream.launch(&kernel, &over, arguments![out, input]).clean();
        assert_eq!(stream.read::<u32>(out), expected, "{entry}, {schedule}");
    }
}

fn numbers(count: usize, bound: u64) -> Vec<u32> {
    let mut numbers = Numbers(count as u64 + bound);
    (0..count).map(|_| numbers.below(bound) as u32).collect()
}

fn collatz(mut n: u32) -> u32 {
    let mut steps = 0;
    while n > 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

#[test]
fn every_lane_loops_as_long_as_it_likes() {
    check("collatz", 2, 64, &numbers(128, 1000), |_, v| Some(collatz(v)));
}

/// 45 threads: the second warp has 13 lanes.
#[test]
fn a_warp_that_is_not_full() {
    check("collatz", 3, 45, &numbers(135, 300), |_, v| Some(collatz(v)));
    check("collatz", 1, 1, &[27], |_, v| Some(collatz(v)));
}

fn nested(i: u32, v: u32) -> Option<u32> {
    if v.is_multiple_of(5) {
        return None;
    }
    let acc = match (v & 1, v & 2) {
        (0, 0) => 1000,
        (0, _) => {
            let k = i & 7;
            k * (k + 1) / 2
        }
        _ if v > 80 => v * 3,
        _ if v > 50 => v * 3 + 1,
        _ => v.wrapping_neg(),
    };
    Some(acc.wrapping_add(v))
}

#[test]
fn nested_divergence_with_lanes_that_leave() {
    check("nested", 1, 96, &numbers(96, 120), nested);
    check("nested", 1, 40, &numbers(40, 10), nested);
}

#[test]
fn a_jump_table_sends_lanes_apart() {
    let expected = |_, v| match v {
        0 => Some(210),
        1 | 3 => Some(11),
        2 => Some(299),
        _ => Some(99),
    };
    check("switch", 1, 64, &numbers(64, 6), expected);
    check("switch", 1, 7, &numbers(7, 3), expected);
}

fn digits(mut n: u32) -> u32 {
    let mut sum = 0;
    while n > 0 {
        sum += n % 10;
        n /= 10;
    }
    sum
}

#[test]
fn functions_called_from_divergent_code_and_twice() {
    let expected =
        |_, v: u32| Some(if v.is_multiple_of(2) { digits(v) } else { 2 * digits(v + 7) });
    check("calls", 1, 64, &numbers(64, 300), expected);
    check("calls", 1, 20, &numbers(20, 300), expected);
}

#[test]
fn a_call_that_some_lanes_make() {
    let expected = |_, v| Some(if v > 40 { digits(v) } else { 12345 });
    check("guarded_call", 1, 64, &numbers(64, 80), expected);
    // None and all of them.
    check("guarded_call", 1, 32, &[3; 32], |_, _| Some(12345));
    check("guarded_call", 1, 32, &[99; 32], |_, _| Some(18));
}

#[test]
fn guards_instead_of_branches() {
    let expected = |_, v: u32| {
        Some(match v {
            0..10 => v * 3,
            _ if v % 2 == 1 => v - 1,
            _ => 0,
        })
    };
    check("guards", 1, 64, &numbers(64, 30), expected);
}

#[test]
fn blocks_and_grids_of_three_dimensions() {
    let kernel = Kernel::new(CONTROL, "coordinates");
    let (grid, block) = ([3, 2, 2], [5, 3, 4]);
    let mut stream = Stream::default();
    let (threads, ctas) = (5 * 3 * 4, 3 * 2 * 2);
    let out = stream.buffer("out", &vec![UNTOUCHED; ctas * threads * 4]);
    let mut over = shape(1, 1);
    (over.grid, over.block) = (grid, block);
    stream.launch(&kernel, &over, arguments![out]).clean();
    let packed =
        |at: u32, [x, y, _]: [u32; 3]| (at % x) | ((at / x % y) << 4) | ((at / x / y) << 8);
    let mut expected = Vec::new();
    for cta in 0..ctas as u32 {
        for thread in 0..threads as u32 {
            let place = [packed(thread, block), packed(cta, grid), thread % 32, thread / 32];
            expected.extend(place);
        }
    }
    assert_eq!(stream.read::<u32>(out), expected);
}

/// Divergence must not depend on the schedule, and warps are counted with it.
#[test]
fn statistics_count_lanes_that_ran() {
    let kernel = Kernel::new(CONTROL, "coordinates");
    let mut stream = Stream::default();
    let out = stream.buffer("out", &vec![0_u32; 40 * 4]);
    let run = stream.launch(&kernel, &shape(1, 40), arguments![out]);
    let counted = run.clean().outcome.statistics;
    let length = kernel.program.len() as u64 - 1; // The last step ends a kernel without `ret`.
    assert_eq!(counted.ctas, 1);
    assert_eq!(counted.warp_instructions, 2 * length);
    assert_eq!(counted.thread_instructions, 40 * length);
    let again =
        stream.launch(&kernel, &shape(1, 40).schedule(Schedule::Random(9)), arguments![out]);
    assert_eq!(again.outcome.statistics, counted);
}

/// Independent thread scheduling: whoever waits does not keep the others from running.
#[test]
fn lanes_of_one_warp_wait_for_each_other() {
    let kernel = Kernel::new(CONTROL, "chain");
    for schedule in schedules(4) {
        let mut stream = Stream::default();
        let cells = stream.buffer("cells", &[0_u32; 3]);
        let over = shape(1, 32).schedule(schedule);
        stream.launch(&kernel, &over, arguments![cells]).clean();
        assert_eq!(stream.read::<u32>(cells), [2, 1, 3], "{schedule}");
    }
}

/// Functions keep their registers and parameters in one place, so that a cycle cannot be run: it is
/// refused, also where a declaration comes first.
#[test]
fn call_cycles_are_refused() {
    let head = ".version 8.7\n.target sm_90\n.address_size 64\n";
    let function = |name: &str, callee: &str| format!(".func {name}() {{ call {callee}; ret; }}\n");
    let kernel = ".visible .entry k() { call f; ret; }\n";
    let declared = ".func f();\n.func g();\n.func h();\n";
    let cases = [
        (format!("{head}{declared}{}{kernel}", function("f", "f")), Some("f")),
        (
            format!("{head}{declared}{}{}{kernel}", function("f", "g"), function("g", "f")),
            Some("f"),
        ),
        (
            format!(
                "{head}{declared}{}{}{}{kernel}",
                function("f", "g"),
                function("g", "h"),
                function("h", "g")
            ),
            Some("g"),
        ),
        (format!("{head}{declared}{}.func g() {{ ret; }}\n{kernel}", function("f", "g")), None),
        // Not reached from the kernel.
        (format!("{head}{declared}.func f() {{ ret; }}\n{}{kernel}", function("g", "g")), None),
    ];
    for (text, cycle) in cases {
        let module = parse(&text).unwrap();
        let decoded = Program::new(&module, None).map(|_| ());
        let expected = cycle.map_or(Ok(()), |name| Err(DecodeError::Recursive(name.to_owned())));
        assert_eq!(decoded, expected, "{text}");
    }
}

/// Many functions, each called from many places: decoding stays linear.
#[test]
fn a_long_chain_of_calls_decodes_quickly() {
    let mut text =
        ".version 8.7\n.target sm_90\n.address_size 64\n.func f0() { ret; }\n".to_owned();
    for at in 1..2000 {
        let call = format!("call f{}; call f0; call f{};", at - 1, at / 2);
        text.push_str(&format!(".func f{at}() {{ {call} ret; }}\n"));
    }
    text.push_str(".visible .entry k() { call f1999; ret; }\n");
    let program = Program::new(&parse(&text).unwrap(), None).unwrap();
    assert!(program.len() > 4 * 1999);
}
