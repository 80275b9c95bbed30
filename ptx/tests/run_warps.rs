//! Warp-wide instructions and barriers against plain Rust.

mod common;

use common::{Kernel, Numbers, Stream, schedules, shape};

const WARP: &str = include_str!("programs/warp.ptx");
const BARRIERS: &str = include_str!("programs/barriers.ptx");

/// From the manual's pseudocode of `shfl`: the lane read, and whether it is in range.
fn source(mode: usize, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, (c >> 8) & 31);
    let most = (lane & segment) | (clamp & !segment);
    let least = lane & segment;
    let (at, inside) = match mode {
        0 => (lane.wrapping_sub(b), lane as i64 - i64::from(b) >= i64::from(most)),
        1 => (lane + b, lane + b <= most),
        2 => (lane ^ b, lane ^ b <= most),
        _ => (least | (b & !segment), least | (b & !segment) <= most),
    };
    if inside { (at, true) } else { (lane, false) }
}

#[test]
fn shuffles_follow_the_manual() {
    let kernel = Kernel::new(WARP, "shuffles");
    let given: Vec<u32> = (0..32).map(|lane| 1000 + lane * lane).collect();
    // Clamp 31 or 0 on whole warps, halves, quarters and pairs.
    let cs = [0x1f, 0x00, 0x101f, 0x1000, 0x181f, 0x1c1f, 0x1e1f, 0x1c00, 0x0f];
    for (b, c) in (0..34).flat_map(|b| cs.map(|c| (b, c))) {
        let mut stream = Stream::default();
        let out = stream.buffer("out", &[0_u32; 32 * 8]);
        let input = stream.buffer("in", &given);
        stream.launch(&kernel, &shape(1, 32), arguments![out, input, b, c]).clean();
        let expected: Vec<u32> = (0..32)
            .flat_map(|lane| (0..4).map(move |mode| source(mode, lane, b, c)))
            .flat_map(|(from, inside)| [1000 + from * from, u32::from(inside)])
            .collect();
        assert_eq!(stream.read::<u32>(out), expected, "b = {b}, c = {c:#x}");
    }
}

#[test]
fn both_sides_of_a_branch_shuffle_among_themselves() {
    let kernel = Kernel::new(WARP, "partial");
    let mut numbers = Numbers(3);
    let given: Vec<u32> = (0..32).map(|_| numbers.below(1 << 20) as u32).collect();
    let (sum, most) = (given[..20].iter().sum::<u32>(), given[20..].iter().max().unwrap());
    for schedule in schedules(3) {
        let mut stream = Stream::default();
        let (out, input) = (stream.buffer("out", &[0_u32; 32]), stream.buffer("in", &given));
        let over = shape(1, 32).schedule(schedule);
        stream.launch(&kernel, &over, arguments![out, input]).clean();
        let found: Vec<u32> = stream.read(out);
        assert_eq!(found[..20], [sum; 20]);
        assert_eq!(found[20..], [*most; 12]);
    }
}

/// What the sixteen words of each lane must be. The masks of a warp of 32 and of 11 lanes differ,
/// in which absent lanes count as gone.
fn collected(given: &[u32]) -> Vec<u32> {
    let present = u32::MAX >> (32 - given.len());
    let mask = |holds: &dyn Fn(u32) -> bool| {
        (0..given.len()).filter(|&at| holds(given[at])).fold(0_u32, |mask, at| mask | 1 << at)
    };
    let over = mask(&|v| v > 3);
    let truths = u32::from(over == present)
        | u32::from(over != 0) << 1
        | u32::from(over == present || over == 0) << 2
        | u32::from(over == 0) << 3;
    let signed = || given.iter().map(|v| *v as i32);
    let fold = |op: fn(u32, u32) -> u32| given.iter().copied().reduce(op).unwrap();
    let mut words = Vec::new();
    for (lane, v) in given.iter().enumerate() {
        let equal = mask(&|other| other == *v);
        let all = if equal == present { present ^ 0x8000_0000 } else { 0 };
        words.extend([over, truths, equal, all]);
        words.extend([equal, present, present, if lane == 0 { 0x100 } else { 0 }]);
        words.extend([fold(u32::wrapping_add), signed().min().unwrap() as u32]);
        words.extend([fold(|a, b| a ^ b), fold(|a, b| a | b), fold(|a, b| a & b)]);
        words.extend([signed().max().unwrap() as u32, fold(u32::min), (1 << lane) - 1]);
    }
    words
}

#[test]
fn votes_matches_elections_and_reductions() {
    let kernel = Kernel::new(WARP, "collectives");
    let mut numbers = Numbers(17);
    let mut draw = |count: usize, bound: u64, offset: u32| -> Vec<u32> {
        (0..count).map(|_| offset.wrapping_add(numbers.below(bound) as u32)).collect()
    };
    let cases = [
        draw(32, 8, 0),
        draw(32, 4, 0),
        draw(32, 100, 4),
        draw(32, 1, 9),
        draw(32, 9, u32::MAX - 3),
        draw(11, 6, 0),
        draw(11, 1, 2),
        draw(1, 9, 0),
    ];
    for given in cases {
        let mut stream = Stream::default();
        let out = stream.buffer("out", &vec![0_u32; given.len() * 16]);
        let input = stream.buffer("in", &given);
        let over = shape(1, given.len() as u32);
        stream.launch(&kernel, &over, arguments![out, input]).clean();
        assert_eq!(stream.read::<u32>(out), collected(&given), "{given:?}");
    }
}

#[test]
fn the_active_mask_is_that_of_the_path() {
    let kernel = Kernel::new(WARP, "masks");
    let mut stream = Stream::default();
    let out = stream.buffer("out", &[0_u32; 64]);
    stream.launch(&kernel, &shape(1, 32), arguments![out]).clean();
    let third = (0..32).step_by(3).fold(0_u32, |mask, lane| mask | 1 << lane);
    for (lane, masks) in stream.read::<u32>(out).chunks(2).enumerate() {
        let inside = if lane % 3 == 0 { third } else { !third };
        assert_eq!(masks, [inside, u32::MAX], "lane {lane}");
    }
}

#[test]
fn a_tree_of_barriers() {
    let kernel = Kernel::new(BARRIERS, "tree");
    let given: Vec<u32> = (0..256).map(|i| i * i + 3).collect();
    for schedule in schedules(6) {
        let mut stream = Stream::default();
        let (out, input) = (stream.buffer("out", &[0_u32]), stream.buffer("in", &given));
        let over = shape(1, 256).schedule(schedule);
        stream.launch(&kernel, &over, arguments![out, input]).clean();
        assert_eq!(stream.read::<u32>(out), [given.iter().sum::<u32>()], "{schedule}");
    }
}

#[test]
fn barriers_of_some_warps() {
    let kernel = Kernel::new(BARRIERS, "pairs");
    let expected: Vec<u32> = (0..128).map(|i: u32| (i ^ 32).pow(2)).collect();
    for schedule in schedules(6) {
        let mut stream = Stream::default();
        let out = stream.buffer("out", &[0_u32; 128]);
        let over = shape(1, 128).schedule(schedule);
        stream.launch(&kernel, &over, arguments![out]).clean();
        assert_eq!(stream.read::<u32>(out), expected, "{schedule}");
    }
}

/// Rounds 0, 1, … of `100 · round + lane`.
fn produced(rounds: u32) -> Vec<u32> {
    (0..32).map(|lane| (0..rounds).map(|round| 100 * round + lane).sum()).collect()
}

#[test]
fn producer_and_consumer_by_arriving_barriers() {
    let kernel = Kernel::new(BARRIERS, "arrive");
    for schedule in schedules(12) {
        let mut stream = Stream::default();
        let out = stream.buffer("out", &[0_u32; 32]);
        let over = shape(1, 64).schedule(schedule);
        stream.launch(&kernel, &over, arguments![out, 7_u32]).clean();
        assert_eq!(stream.read::<u32>(out), produced(7), "{schedule}");
    }
}

/// The producer only says that it was there, and overwrites what may still be read.
#[test]
fn a_producer_that_does_not_wait_races() {
    let kernel = Kernel::variant(BARRIERS, "arrive", &["hasty"]);
    for schedule in schedules(6) {
        let mut stream = Stream::default();
        let out = stream.buffer("out", &[0_u32; 32]);
        let over = shape(1, 64).schedule(schedule);
        let run = stream.launch(&kernel, &over, arguments![out, 4_u32]);
        assert!(run.errors().contains(&"race"), "{schedule}: {}", run.shown());
    }
}

#[test]
fn barriers_that_count_a_predicate() {
    let kernel = Kernel::new(BARRIERS, "counted");
    let mut numbers = Numbers(21);
    let mut draw = |count: usize, bound: u64, offset: u32| -> Vec<u32> {
        (0..count).map(|_| offset + numbers.below(bound) as u32).collect()
    };
    let cases = [draw(128, 20, 0), draw(64, 9, 11), draw(64, 10, 0), draw(50, 30, 0)];
    for given in cases {
        let held = given.iter().filter(|v| **v > 10).count();
        let truth = |truth: bool| u32::from(truth);
        let (all, any) = (held == given.len(), held > 0);
        let words = [held as u32, truth(all), truth(any), truth(!any)];
        for schedule in schedules(3) {
            let mut stream = Stream::default();
            let out = stream.buffer("out", &vec![9_u32; given.len() * 4]);
            let input = stream.buffer("in", &given);
            let over = shape(1, given.len() as u32).schedule(schedule);
            stream.launch(&kernel, &over, arguments![out, input]).clean();
            assert_eq!(stream.read::<u32>(out), words.repeat(given.len()), "{schedule}");
        }
    }
}

#[test]
fn a_ring_of_mbarriers() {
    let kernel = Kernel::new(BARRIERS, "ring");
    let expected: Vec<u32> =
        (0..32).map(|lane| (1..=9).map(|round| 1000 * round + lane).sum()).collect();
    for schedule in schedules(12) {
        let mut stream = Stream::default();
        let out = stream.buffer("out", &[0_u32; 32]);
        let over = shape(1, 64).schedule(schedule);
        stream.launch(&kernel, &over, arguments![out, 9_u32]).clean();
        assert_eq!(stream.read::<u32>(out), expected, "{schedule}");
    }
}

/// A producer that is far ahead has lapped the parity, and the consumer waits for ever; one that is
/// not overwrites what is being read.
#[test]
fn a_ring_that_is_filled_before_it_is_empty_races() {
    let kernel = Kernel::variant(BARRIERS, "ring", &["eager"]);
    let mut seen = std::collections::BTreeSet::new();
    for schedule in schedules(8) {
        let mut stream = Stream::default();
        let out = stream.buffer("out", &[0_u32; 32]);
        let over = shape(1, 64).schedule(schedule).step_limit(3000);
        let run = stream.launch(&kernel, &over, arguments![out, 9_u32]);
        assert!(!run.errors().is_empty(), "{schedule}: {}", run.shown());
        seen.extend(run.errors());
    }
    assert!(seen.contains("race") && seen.contains("step-limit"), "{seen:?}");
}

#[test]
fn barriers_that_are_not_aligned_take_lanes_one_by_one() {
    let step = |i: u32, v: u32| if i.is_multiple_of(2) { v * 3 } else { v + 100 };
    // Each round a value goes to the neighbour: after three it has come from there.
    let follow = |i: u32| (0..3).fold((i ^ 1, i ^ 1), |(lane, v), _| (lane ^ 1, step(lane, v))).1;
    let words: Vec<u32> = (0..64).map(follow).collect();
    let run = |faults: &[&str], schedule| {
        let kernel = Kernel::variant(BARRIERS, "apart", faults);
        let mut stream = Stream::default();
        let out = stream.buffer("out", &[0_u32; 64]);
        let run = stream.launch(&kernel, &shape(1, 64).schedule(schedule), arguments![out]);
        (run, stream.read::<u32>(out))
    };
    for schedule in schedules(6) {
        let (found, out) = run(&[], schedule);
        found.clean();
        assert_eq!(out, words, "{schedule}");
        let (found, _) = run(&["aligned"], schedule);
        assert!(found.errors().contains(&"barrier-diverged"), "{}", found.shown());
    }
}
