//! Planted faults: each is found, named and placed; the twin without it is clean.

mod common;

use bitstable_ptx::{exec::Schedule, report::Severity};
use common::{Buffer, Kernel, Run, Shape, Stream, schedules, shape};

const FAULTS: &str = include_str!("programs/faults.ptx");

/// Runs `entry(out)` on 64 words.
fn run(kernel: &Kernel, over: &Shape) -> (Run, Vec<u32>) {
    let mut stream = Stream::default();
    let out = stream.buffer("out", &[5_u32; 64]);
    let run = stream.launch(kernel, over, arguments![out]);
    let words = stream.read(out);
    (run, words)
}

/// The kernel without faults is clean under several schedules.
fn twin(entry: &str, over: &Shape) -> Vec<u32> {
    let kernel = Kernel::new(FAULTS, entry);
    let mut words = Vec::new();
    for schedule in schedules(4) {
        let (found, left) = run(&kernel, &over.clone().schedule(schedule));
        found.clean();
        words = left;
    }
    words
}

/// Kinds of errors, and the kernel with this fault, run once.
fn planted(entry: &str, fault: &str, over: &Shape) -> (Kernel, Run, Vec<u32>) {
    let kernel = Kernel::variant(FAULTS, entry, &[fault]);
    let (run, words) = run(&kernel, over);
    (kernel, run, words)
}

#[test]
fn a_missing_barrier_before_a_read() {
    let words = twin("exchange", &shape(1, 64));
    assert_eq!(words, (0..64).map(|i| i ^ 32).collect::<Vec<_>>());
    let (kernel, run, _) = planted("exchange", "raw", &shape(1, 64));
    // The first warp reads what is not there yet, the second what nothing orders.
    assert_eq!(run.errors(), ["race", "uninitialised"], "{}", run.shown());
    let found = run.at("race", &[kernel.line("read"), kernel.line("first")]);
    assert_eq!((found.places[0].role, found.places[1].role), ("read", "write"));
    assert_eq!(found.count, 32);
    run.at("race", &[kernel.line("first"), kernel.line("read")]);
}

#[test]
fn a_missing_barrier_after_a_read() {
    for schedule in schedules(4) {
        let over = shape(1, 64).schedule(schedule);
        let (kernel, run, _) = planted("exchange", "war", &over);
        assert_eq!(run.errors(), ["race"], "{schedule}");
        assert!(run.findings.iter().all(|found| {
            let mut lines: Vec<_> = found.places.iter().map(|place| place.ptx_line).collect();
            lines.sort_unstable();
            lines == [kernel.line("read"), kernel.line("second")]
        }));
    }
}

#[test]
fn an_aligned_barrier_in_divergent_code() {
    twin("branches", &shape(1, 64));
    let (kernel, run, words) = planted("branches", "diverged", &shape(1, 64));
    assert!(run.errors().contains(&"barrier-diverged"), "{}", run.shown());
    let found = run.findings.iter().find(|found| found.kind == "barrier-diverged").unwrap();
    let mut lines: Vec<_> = found.places.iter().map(|place| place.ptx_line).collect();
    lines.sort_unstable();
    assert_eq!(lines, [kernel.line("high"), kernel.line("low")]);
    // It goes on all the same.
    assert_eq!(words, (0..64).collect::<Vec<_>>());
}

#[test]
fn a_barrier_that_a_warp_left_out() {
    twin("leavers", &shape(1, 64));
    let (kernel, run, words) = planted("leavers", "warp", &shape(1, 64));
    assert_eq!(run.errors(), ["barrier-not-reached"], "{}", run.shown());
    let found = &run.findings[0];
    assert_eq!(found.message, "barrier 0 waits for ever: 32 of 64 threads are there");
    assert_eq!(found.places[0].ptx_line, kernel.line("barrier"));
    assert_eq!((found.places[1].role, found.places[1].thread.thread), ("has exited", 32));
    assert_eq!(words[..32], (0..32).collect::<Vec<_>>());
    assert_eq!(words[32..], [5; 32]);
}

#[test]
fn a_barrier_that_some_lanes_left_out() {
    let (kernel, run, _) = planted("leavers", "lanes", &shape(1, 64));
    assert_eq!(run.errors(), ["barrier-not-reached"], "{}", run.shown());
    assert_eq!(run.findings[0].message, "barrier 0 waits for ever: 50 of 64 threads are there");
    assert_eq!(run.findings[0].places[0].ptx_line, kernel.line("barrier"));
}

#[test]
fn warps_that_wait_at_each_others_barriers() {
    twin("crossed", &shape(1, 64));
    for schedule in schedules(4) {
        let (kernel, run, words) = planted("crossed", "deadlock", &shape(1, 64).schedule(schedule));
        assert_eq!(run.errors(), ["barrier-not-reached"], "{schedule}: {}", run.shown());
        let first = &run.findings[0];
        assert_eq!(first.message, "barrier 1 waits for ever: 32 of 64 threads are there");
        assert_eq!(first.places[0].ptx_line, kernel.line("one"));
        assert_eq!(first.places[1].role, "is at");
        assert_eq!(words, (0..64).collect::<Vec<_>>());
    }
}

#[test]
fn a_shuffle_with_different_masks() {
    let words = twin("rotate", &shape(1, 32));
    assert_eq!(words[..32], (0..32).map(|i| (i + 1) % 32).collect::<Vec<_>>());
    for fault in ["masks", "outside"] {
        let (kernel, run, _) = planted("rotate", fault, &shape(1, 32));
        assert!(run.errors().contains(&"members-disagree"), "{fault}: {}", run.shown());
        let found = run.findings.iter().find(|found| found.kind == "members-disagree").unwrap();
        assert_eq!(found.places[0].ptx_line, kernel.line("shuffle"), "{fault}");
    }
}

#[test]
fn a_shuffle_whose_members_went_elsewhere() {
    let (kernel, run, _) = planted("rotate", "apart", &shape(1, 32));
    assert!(run.errors().contains(&"members-disagree"), "{}", run.shown());
    let found = run.findings.iter().find(|found| found.kind == "members-disagree").unwrap();
    assert_eq!(found.message, "members 0xffffffff are named, 0x0000ffff are there");
    assert_eq!(found.places[0].ptx_line, kernel.line("shuffle"));
}

#[test]
fn a_shuffle_that_reads_an_absent_lane() {
    let (kernel, run, _) = planted("rotate", "absent", &shape(1, 32));
    assert_eq!(run.errors(), ["lane-absent"], "{}", run.shown());
    let found = run.at("lane-absent", &[kernel.line("shuffle")]);
    assert_eq!(found.places[0].thread.thread, 15);
    assert!(found.message.contains("lane 16"), "{}", found.message);
}

/// `bounds(out, in)` with 16 bytes each and 64 of shared memory.
fn bounds(fault: Option<&str>, read_only: bool) -> (Kernel, Run) {
    let kernel = Kernel::variant(FAULTS, "bounds", fault.as_slice());
    let mut words = [1_u32, 2, 3, 4];
    let mut stream = Stream::default();
    let input = stream.buffer("in", &[5_u32, 6, 7, 8]);
    let start = words.as_mut_ptr().cast::<u8>();
    // SAFETY: `words` outlives the stream's only launch, and nobody else touches it until then.
    unsafe { stream.memory.add_host(start, size_of_val(&words), !read_only, "out") };
    let over = shape(1, 1).dynamic_shared(64);
    let run = stream.launch(&kernel, &over, arguments![Buffer(start as u64), input]);
    assert!(fault.is_some() || words == [1, 2, 3, if read_only { 4 } else { 8 }], "{words:?}");
    (kernel, run)
}

#[test]
fn accesses_at_the_very_end_are_clean() {
    bounds(None, false).1.clean();
}

#[test]
fn accesses_past_the_end_or_before_the_start() {
    let cases = [
        ("load", "a read of 4 bytes", "past the end of in of 16 bytes"),
        ("before", "a read of 4 bytes", "before in of 16 bytes"),
        ("straddle", "a read of 4 bytes", "2 bytes before in of 16 bytes"),
        ("null", "a read of 4 bytes at global address 0x10", "a null pointer"),
        ("shared", "a write of 4 bytes at shared address 0x440", "outside the 64 bytes"),
        ("store", "a write of 4 bytes", "past the end of out of 16 bytes"),
        ("atomic", "a atomic of 4 bytes", "before out of 16 bytes"),
    ];
    for (fault, what, reason) in cases {
        let (kernel, run) = bounds(Some(fault), false);
        let found = run.at("out-of-bounds", &[kernel.line(fault)]);
        assert!(found.message.starts_with(what), "{fault}: {}", found.message);
        assert!(found.message.contains(reason), "{fault}: {}", found.message);
        assert_eq!(found.severity, Severity::Error);
    }
}

#[test]
fn a_vector_that_is_not_aligned() {
    let (kernel, run) = bounds(Some("misaligned"), false);
    assert_eq!(run.errors(), ["misaligned"], "{}", run.shown());
    let found = run.at("misaligned", &[kernel.line("vector")]);
    assert!(found.message.contains("byte 4 of `in`"), "{}", found.message);
    assert!(found.message.ends_with("not a multiple of 8"), "{}", found.message);
}

#[test]
fn shared_memory_that_nobody_wrote() {
    let (kernel, run) = bounds(Some("unwritten"), false);
    assert_eq!(run.errors(), ["uninitialised"]);
    run.at("uninitialised", &[kernel.line("unwritten")]);
}

#[test]
fn a_buffer_that_is_only_read() {
    let (kernel, run) = bounds(None, true);
    assert_eq!(run.errors(), ["read-only"], "{}", run.shown());
    let found = run.at("read-only", &[store_line(&kernel)]);
    assert!(found.message.contains("byte 12 of `out`"), "{}", found.message);
}

/// The good twin carries no mark: its store stands right before `ret`.
fn store_line(kernel: &Kernel) -> u32 {
    let store = kernel.program.module().functions.iter().find(|f| f.name == "bounds").unwrap();
    let body = store.body.as_ref().unwrap();
    body.instructions[body.instructions.len() - 2].at.line
}

#[test]
fn a_trap() {
    let (kernel, run) = bounds(Some("trap"), false);
    assert_eq!(run.errors(), ["trap"]);
    run.at("trap", &[kernel.line("trap")]);
}

#[test]
fn a_loop_without_end() {
    twin("countdown", &shape(1, 1));
    let (kernel, run, words) = planted("countdown", "endless", &shape(1, 1).step_limit(1000));
    assert_eq!(run.errors(), ["step-limit"]);
    let found = &run.findings[0];
    let line = kernel.line("loop");
    assert!((line..line + 3).contains(&found.places[0].ptx_line), "{found}");
    assert!(found.message.contains("1000"), "{found}");
    assert_eq!(words, [5; 64]);
}

#[test]
fn two_ctas_that_store_to_one_word() {
    twin("words", &shape(4, 1));
    for schedule in schedules(4) {
        let over = shape(4, 1).schedule(schedule);
        let (kernel, run, words) = planted("words", "same", &over);
        assert_eq!((run.errors(), run.kinds()), (vec![], vec!["same-bytes"]), "{}", run.shown());
        assert_eq!(run.findings[0].severity, Severity::Note);
        run.at("same-bytes", &[kernel.line("store"), kernel.line("store")]);
        assert_eq!(words[0], 5);
        let (kernel, run, _) = planted("words", "different", &over);
        assert_eq!(run.errors(), ["race"], "{schedule}: {}", run.shown());
        run.at("race", &[kernel.line("store"), kernel.line("store")]);
        // Asked to be strict, the note is an error too.
        let mut strict = over;
        strict.options.strict = true;
        assert_eq!(planted("words", "same", &strict).1.errors(), ["same-bytes"]);
    }
}

#[test]
fn float_atomics_of_several_ctas() {
    let run = |fault: Option<&str>, schedule| {
        let kernel = Kernel::variant(FAULTS, "sums", fault.as_slice());
        let given: Vec<f32> = (0..64).map(|i| (i as f32 - 20.0) * 1.1).collect();
        let mut stream = Stream::default();
        let (total, input) = (stream.buffer("total", &[0_u32]), stream.buffer("in", &given));
        let over = shape(2, 32).schedule(schedule);
        let run = stream.launch(&kernel, &over, arguments![total, input]);
        (kernel, run, stream.read::<u32>(total)[0])
    };
    let whole: i32 = (0..64).map(|i| ((i as f32 - 20.0) * 1.1).round_ties_even() as i32).sum();
    for schedule in schedules(4) {
        let (_, found, total) = run(None, schedule);
        found.clean();
        assert_eq!(total as i32, whole);
        let (kernel, found, _) = run(Some("float"), schedule);
        assert_eq!(found.kinds(), ["arrival-order"], "{}", found.shown());
        found.at("arrival-order", &[kernel.line("add"), kernel.line("add")]);
    }
}

#[test]
fn a_copy_that_is_read_before_its_wait() {
    let run = |faults: &[&str]| {
        let kernel = Kernel::variant(FAULTS, "copied", faults);
        let given: Vec<u32> = (0..128).map(|i| i * 3).collect();
        let mut stream = Stream::default();
        let (out, input) = (stream.buffer("out", &[0_u32; 32]), stream.buffer("in", &given));
        let run = stream.launch(&kernel, &shape(1, 32), arguments![out, input]);
        (kernel, run, stream.read::<u32>(out))
    };
    let (_, found, out) = run(&[]);
    found.clean();
    assert_eq!(out, (0..32).map(|i| (4 * i + 3) * 3).collect::<Vec<_>>());
    let (kernel, found, _) = run(&["early"]);
    assert!(found.errors().contains(&"race"), "{}", found.shown());
    found.at("race", &[kernel.line("read"), kernel.line("copy")]);
}

#[test]
fn operands_that_are_wrong_at_run_time() {
    let words = twin("operands", &shape(1, 32));
    assert_eq!(words[..32], (0..32).collect::<Vec<_>>());
    let cases = [
        ("number", "barrier", "barrier 16 of 16"),
        ("count", "barrier", "a barrier for 33 threads"),
        ("object", "arrive", "no mbarrier is initialised"),
        ("uniform", "branch", "a branch marked uniform diverges"),
        ("table", "table", "branch index 2 of 2 targets"),
    ];
    for (fault, mark, message) in cases {
        let (kernel, run, _) = planted("operands", fault, &shape(1, 32));
        assert_eq!(run.errors(), ["bad-operand"], "{fault}: {}", run.shown());
        let found = run.at("bad-operand", &[kernel.line(mark)]);
        assert!(found.message.contains(message), "{fault}: {}", found.message);
    }
}

/// A fault in one warp does not hide another's: the run goes on.
#[test]
fn faults_are_told_apart_and_counted() {
    let kernel = Kernel::variant(FAULTS, "exchange", &["raw", "war"]);
    let (run, _) = run(&kernel, &shape(1, 64).schedule(Schedule::Forward));
    let (first, read, second) = (kernel.line("first"), kernel.line("read"), kernel.line("second"));
    for lines in [[read, second], [first, read]] {
        run.at("race", &lines);
    }
    assert!(run.findings.iter().all(|found| found.count == 32), "{}", run.shown());
}
