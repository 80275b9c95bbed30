//! A run can be repeated: one schedule gives the same bytes, statistics and findings, on any number
//! of host threads; what all schedules share, and what they need not.

mod common;

use bitstable_ptx::exec::{Schedule, Statistics, explain::Explained};
use common::{Argument, Kernel, Numbers, Shape, Stream, schedules, shape};

/// Everything a launch leaves behind.
#[derive(PartialEq, Debug)]
struct Traces {
    bytes: Vec<Vec<u8>>,
    statistics: Statistics,
    findings: Vec<Explained>,
    printed: Vec<String>,
}

/// A kernel, with buffers of words and the sizes that follow them.
struct Case {
    kernel: Kernel,
    buffers: Vec<Vec<u32>>,
    sizes: Vec<u32>,
    over: Shape,
}

impl Case {
    fn run(&self, over: &Shape) -> Traces {
        let mut stream = Stream::default();
        let buffers: Vec<_> = (0..)
            .zip(&self.buffers)
            .map(|(number, words)| stream.buffer(&format!("b{number}"), words))
            .collect();
        let arguments = buffers.iter().map(|buffer| Argument::from(*buffer));
        let arguments = arguments.chain(self.sizes.iter().map(|size| Argument::from(*size)));
        let run = stream.launch(&self.kernel, over, arguments.collect());
        Traces {
            bytes: buffers.iter().map(|buffer| stream.read(*buffer)).collect(),
            statistics: run.outcome.statistics,
            findings: run.findings,
            printed: run.outcome.printed,
        }
    }
}

fn words(count: usize, bound: u64) -> Vec<u32> {
    let mut numbers = Numbers(count as u64);
    (0..count).map(|_| numbers.below(bound) as u32).collect()
}

const CONTROL: &str = include_str!("programs/control.ptx");
const BARRIERS: &str = include_str!("programs/barriers.ptx");
const BETWEEN: &str = include_str!("programs/between.ptx");
const FAULTS: &str = include_str!("programs/faults.ptx");

/// Kernels that do not race.
fn right() -> Vec<Case> {
    let zeros = |count| vec![0; count];
    let case = |kernel, buffers: &[Vec<u32>], sizes: &[u32], over| {
        let (buffers, sizes) = (buffers.to_vec(), sizes.to_vec());
        Case { kernel, buffers, sizes, over }
    };
    let collatz = Kernel::new(CONTROL, "collatz");
    let tickets = Kernel::new(BETWEEN, "tickets");
    let locked = Kernel::new(BETWEEN, "locked");
    let handover = Kernel::new(BETWEEN, "handover");
    let ring = Kernel::new(BARRIERS, "ring");
    vec![
        case(collatz, &[zeros(8 * 64), words(8 * 64, 900)], &[], shape(8, 64)),
        case(tickets, &[zeros(9 * 32), words(9 * 32, 900), zeros(1)], &[9], shape(4, 32)),
        case(locked, &[zeros(1), zeros(1)], &[3], shape(3, 32)),
        case(handover, &[zeros(128), zeros(64), zeros(1)], &[], shape(3, 64)),
        case(ring, &[zeros(32)], &[6], shape(1, 64)),
    ]
}

/// Kernels that race, or depend on the order of arrival.
fn wrong() -> Vec<Case> {
    let zeros = |count| vec![0; count];
    let case = |kernel, buffers: &[Vec<u32>], over| Case {
        kernel,
        buffers: buffers.to_vec(),
        sizes: vec![],
        over,
    };
    let floats: Vec<u32> = Numbers(4).floats(256).iter().map(|f| f.to_bits()).collect();
    let store = Kernel::variant(FAULTS, "words", &["different"]);
    let sum = Kernel::variant(FAULTS, "sums", &["float"]);
    let flag = Kernel::variant(BETWEEN, "handover", &["relaxed"]);
    vec![
        case(store, &[zeros(64)], shape(32, 1)),
        case(sum, &[zeros(1), floats], shape(4, 64)),
        case(flag, &[zeros(64), zeros(64), zeros(1)], shape(2, 64)),
    ]
}

#[test]
fn the_same_schedule_gives_the_same_run() {
    for case in right().iter().chain(&wrong()) {
        for schedule in schedules(3) {
            // One host thread: CTAs that race on several are not repeatable.
            let over = case.over.clone().schedule(schedule).jobs(1);
            let name = case.kernel.program.name();
            assert_eq!(case.run(&over), case.run(&over), "{name}, {schedule}");
        }
    }
}

#[test]
fn host_threads_change_nothing_where_nothing_races() {
    for case in right() {
        for schedule in schedules(2) {
            let over = case.over.clone().schedule(schedule);
            let alone = case.run(&over.clone().jobs(1));
            assert_eq!(alone.findings.iter().filter(|f| f.kind != "arrival-order").count(), 0);
            for jobs in [0, 2, 4] {
                let name = case.kernel.program.name();
                assert_eq!(alone, case.run(&over.clone().jobs(jobs)), "{name}, {jobs} jobs");
            }
        }
    }
}

/// A race is found on several host threads too, whichever CTA comes first.
#[test]
fn host_threads_do_not_hide_a_race() {
    let case = &wrong()[0];
    for _ in 0..20 {
        let traces = case.run(&case.over.clone().jobs(4));
        assert!(traces.findings.iter().any(|found| found.kind == "race"), "{traces:?}");
    }
}

#[test]
fn schedules_agree_on_bytes_where_nothing_races() {
    for case in right() {
        let first = case.run(&case.over);
        // Memory only: how often a lock is tried depends on the order of turns.
        for schedule in schedules(12) {
            let other = case.run(&case.over.clone().schedule(schedule));
            assert_eq!(first.bytes, other.bytes, "{}, {schedule}", case.kernel.program.name());
        }
    }
}

/// What a race decides comes out differently under some schedule, and is reported under all.
#[test]
fn schedules_tell_a_racy_kernel() {
    for case in wrong() {
        let runs: Vec<_> = schedules(12)
            .map(|schedule| case.run(&case.over.clone().schedule(schedule).jobs(1)))
            .collect();
        let name = case.kernel.program.name();
        assert!(runs.iter().all(|run| !run.findings.is_empty()), "{name}");
        if name != "handover" {
            assert!(runs.iter().any(|run| run.bytes != runs[0].bytes), "{name}");
        }
    }
}

/// CTAs that do not speak to each other run in the order of the schedule.
#[test]
fn forward_and_reversed_are_what_they_say() {
    let case = &wrong()[0];
    let last = |schedule| {
        let traces = case.run(&case.over.clone().schedule(schedule).jobs(1));
        u32::from_le_bytes(traces.bytes[0][..4].try_into().unwrap())
    };
    assert_eq!(last(Schedule::Forward), 31);
    assert_eq!(last(Schedule::Reversed), 0);
}
