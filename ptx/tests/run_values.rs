//! Values and storage against plain Rust: carries, predicates, vectors, narrow loads, local,
//! constant and shared variables, clocks, prints.

mod common;

use bitstable_ptx::exec::Schedule;
use common::{Kernel, Numbers, Stream, shape};

const VALUES: &str = include_str!("programs/values.ptx");
const SPEAKING: &str = include_str!("programs/speaking.ptx");

#[test]
fn carries_make_128_bit_arithmetic() {
    let kernel = Kernel::new(VALUES, "wide");
    let mut numbers = Numbers(2);
    let mut given: Vec<u64> = (0..30 * 4).map(|_| numbers.next()).collect();
    // Carries through every word.
    given.extend([u64::MAX, u64::MAX, 1, 0, 0, 0, 1, 0]);
    let mut stream = Stream::default();
    let out = stream.buffer("out", &[0_u64; 32 * 6]);
    let input = stream.buffer("in", &given);
    stream.launch(&kernel, &shape(1, 32), arguments![out, input]).clean();
    let long = |words: &[u64]| u128::from(words[0]) | u128::from(words[1]) << 64;
    for (found, given) in stream.read::<u64>(out).chunks(6).zip(given.chunks(4)) {
        let (a, b) = (long(given), long(&given[2..]));
        assert_eq!(long(found), a.wrapping_add(b), "{a} + {b}");
        assert_eq!(long(&found[2..]), a.wrapping_sub(b), "{a} - {b}");
        assert_eq!(long(&found[4..]), a.wrapping_mul(b), "{a} * {b}");
    }
}

#[test]
fn comparisons_with_two_results() {
    let kernel = Kernel::new(VALUES, "paired");
    let given: Vec<i32> =
        (0..32).map(|i| [7, -5, 99, 100, 200, 201, i32::MIN, i32::MAX][i % 8]).collect();
    let mut stream = Stream::default();
    let (out, input) = (stream.buffer("out", &[0_u32; 32]), stream.buffer("in", &given));
    stream.launch(&kernel, &shape(1, 32), arguments![out, input]).clean();
    for (found, v) in stream.read::<u32>(out).iter().zip(given) {
        // The second result is the opposite comparison, joined alike.
        let (small, large, seven) = (v < 100, v as u32 > 200, v == 7);
        let expected =
            [small, !small, large | small, !large | small, seven ^ !small, !seven ^ !small];
        let expected = (0..).zip(expected).map(|(at, truth)| u32::from(truth) << at).sum::<u32>();
        assert_eq!(*found, expected, "{v}");
    }
}

#[test]
fn vectors_of_every_width() {
    let kernel = Kernel::new(VALUES, "vectors");
    let mut numbers = Numbers(4);
    let given: Vec<u8> = (0..33 * 80).map(|_| numbers.next() as u8).collect();
    let mut stream = Stream::default();
    let out = stream.buffer("out", &vec![0_u8; given.len()]);
    let input = stream.buffer("in", &given);
    stream.launch(&kernel, &shape(1, 33), arguments![out, input]).clean();
    assert_eq!(stream.read::<u8>(out), given);
}

#[test]
fn narrow_loads_are_extended_by_their_sign() {
    let kernel = Kernel::new(VALUES, "narrow");
    let mut numbers = Numbers(5);
    let given: Vec<u64> = (0..32).map(|_| numbers.next() | 0x80).collect();
    let mut stream = Stream::default();
    let (out, input) = (stream.buffer("out", &[0_i64; 160]), stream.buffer("in", &given));
    stream.launch(&kernel, &shape(1, 32), arguments![out, input]).clean();
    for (found, v) in stream.read::<i64>(out).chunks(5).zip(given) {
        let byte = i64::from(v as i8);
        assert_eq!(
            found,
            [byte, byte, i64::from(v as i16), i64::from(v as i32), i64::from(v as u8)]
        );
    }
}

#[test]
fn local_arrays_belong_to_one_thread() {
    let kernel = Kernel::new(VALUES, "local");
    let given: Vec<u32> = (0..70).map(|i| i * 13 + 1).collect();
    let mut stream = Stream::default();
    let (out, input) = (stream.buffer("out", &[0_u32; 70]), stream.buffer("in", &given));
    let over = shape(1, 70).schedule(Schedule::Random(1));
    stream.launch(&kernel, &over, arguments![out, input]).clean();
    let expected: Vec<u32> =
        (0..).zip(&given).map(|(i, v)| (v & 15) * v + i + 15 * v + i).collect();
    assert_eq!(stream.read::<u32>(out), expected);
}

#[test]
fn initialised_variables_of_the_module() {
    let kernel = Kernel::new(VALUES, "initialised");
    let mut stream = Stream::default();
    let out = stream.buffer("out", &[0_u8; 60]);
    // The second launch finds them as the module has them.
    for _ in 0..2 {
        stream.launch(&kernel, &shape(1, 1), arguments![out]).clean();
        let mut expected = Vec::new();
        [2_u32, 13, 5, 7].iter().for_each(|v| expected.extend(v.to_le_bytes()));
        [0x1234_5678_9abc_def0, u64::MAX, 7, 5]
            .iter()
            .for_each(|v| expected.extend(v.to_le_bytes()));
        [0.5_f32, -0.5, 1.5].iter().for_each(|v| expected.extend(v.to_le_bytes()));
        assert_eq!(stream.read::<u8>(out), expected);
    }
}

#[test]
fn static_and_dynamic_shared_memory_side_by_side() {
    let kernel = Kernel::new(VALUES, "shared");
    for threads in [16, 40, 64] {
        let mut stream = Stream::default();
        let out = stream.buffer("out", &vec![0_u32; 4 * threads as usize]);
        let over = shape(2, threads).dynamic_shared(4 * threads);
        // Both CTAs write the same bytes to `out`.
        let run = stream.launch(&kernel, &over, arguments![out]);
        run.no_errors();
        assert_eq!(run.kinds(), ["same-bytes"]);
        let expected: Vec<u32> =
            (0..threads).flat_map(|i| [500 + (i + 1) % threads, 77, 11, 4 * threads]).collect();
        assert_eq!(stream.read::<u32>(out), expected);
    }
}

/// Dynamic shared memory that is too small is out of bounds, and the rest still runs.
#[test]
fn dynamic_shared_memory_ends_where_the_launch_says() {
    let kernel = Kernel::new(VALUES, "shared");
    let mut stream = Stream::default();
    let out = stream.buffer("out", &[0_u32; 64]);
    let over = shape(1, 16).dynamic_shared(60);
    let run = stream.launch(&kernel, &over, arguments![out]);
    assert_eq!(run.errors(), ["out-of-bounds"], "{}", run.shown());
    assert_eq!(stream.read::<u32>(out)[14 * 4..], [0, 77, 11, 60, 500, 77, 11, 60]);
}

#[test]
fn clocks_go_forward() {
    let kernel = Kernel::new(VALUES, "clocks");
    let mut stream = Stream::default();
    let out = stream.buffer("out", &[0_u32; 128]);
    let over = shape(1, 64).schedule(Schedule::Random(3));
    stream.launch(&kernel, &over, arguments![out]).clean();
    for pair in stream.read::<u32>(out).chunks(2) {
        assert!(pair[0] >= 30 && pair[1] >= pair[0], "{pair:?}");
    }
}

#[test]
fn prints_take_their_arguments_from_local_memory() {
    let kernel = Kernel::new(SPEAKING, "speak");
    let given: Vec<f32> = (0..8).map(|i| i as f32 * 1.25 - 0.5).collect();
    let mut stream = Stream::default();
    let input = stream.buffer("in", &given);
    let run = stream.launch(&kernel, &shape(1, 8), arguments![input]);
    run.clean();
    assert_eq!(
        run.outcome.printed,
        ["lane   0: -0.50 beef 9000000000\n", "lane   1: 0.75 beef 9000000000\n"]
    );
}

#[test]
fn a_failed_assertion_says_what_and_where() {
    let kernel = Kernel::new(SPEAKING, "insist");
    let launch = |given: &[u32]| {
        let mut stream = Stream::default();
        let input = stream.buffer("in", given);
        stream.launch(&kernel, &shape(1, 8), arguments![input])
    };
    launch(&[0, 1, 2, 0, 1, 2, 0, 1]).clean();
    let run = launch(&[0, 1, 2, 0, 1, 3, 0, 1]);
    assert_eq!(run.errors(), ["trap"]);
    let found = run.at("trap", &[kernel.line("assert")]);
    assert_eq!(found.message, "k.py:42: k: assertion failed: x < 3");
    assert_eq!(found.places[0].thread.thread, 5);
}
