//! Litmus tests of the PTX memory model, as kernels: what orders and what does not, by ordering,
//! scope, fence and space; under many schedules, since an answer must not depend on one.

mod common;

use common::{Kernel, Run, Shape, Stream, schedules, shape};

const LITMUS: &str = include_str!("programs/litmus.ptx");

/// A text with its words between dollar signs put in.
fn filled(words: &[(&str, &str)]) -> String {
    let fill = |text: String, (name, word): &(&str, &str)| text.replace(&format!("${name}$"), word);
    let text = words.iter().fold(LITMUS.to_owned(), fill);
    // Whatever a test does not use stands in another kernel.
    ["writer", "reader", "after", "place", "first", "between", "then", "forward"]
        .iter()
        .fold(text, |text, name| fill(text, &(name, "")))
        .replace("$space$", "global")
}

/// Where the reader of a message is, seen from the writer.
#[derive(Clone, Copy, Debug)]
enum Reader {
    SameWarp,
    SameCta,
    OtherCta,
}
use Reader::{OtherCta, SameCta, SameWarp};

/// How a flag is written and read: `writer` ends in the write of 1, `reader` reads into `%v`,
/// `after` stands behind the loop that waits.
struct Protocol {
    writer: &'static str,
    reader: &'static str,
    after: &'static str,
}

fn message(protocol: &Protocol, space: &str) -> Kernel {
    let place = if space == "shared" { "mov.u64 %cells, dynamic;" } else { "" };
    let (writer, read) =
        (protocol.writer.replace("SPACE", space), protocol.reader.replace("SPACE", space));
    let words = [
        ("space", space),
        ("place", place),
        ("writer", &writer),
        ("reader", &read),
        ("after", protocol.after),
    ];
    Kernel::new(&filled(&words), "message")
}

/// Passes a message; also what arrived.
fn pass(kernel: &Kernel, reader: Reader, over: &Shape) -> (Run, u32) {
    let (cta, thread) = match reader {
        SameWarp => (0_u32, 1_u32),
        SameCta => (0, 33),
        OtherCta => (1, 0),
    };
    let mut stream = Stream::default();
    let (out, cells) = (stream.buffer("out", &[0_u32]), stream.buffer("cells", &[0_u32; 64]));
    let run = stream.launch(kernel, over, arguments![out, cells, cta, thread]);
    (run, stream.read::<u32>(out)[0])
}

const RELEASE: &str = "st.release.gpu.SPACE.u32 [%cells+128], 1;";
const RELAXED: &str = "st.relaxed.gpu.SPACE.u32 [%cells+128], 1;";
const ACQUIRE: &str = "ld.acquire.gpu.SPACE.u32 %v, [%cells+128];";
const READ: &str = "ld.relaxed.gpu.SPACE.u32 %v, [%cells+128];";

fn ordered() -> Vec<Protocol> {
    let protocol = |writer, reader, after| Protocol { writer, reader, after };
    vec![
        protocol(RELEASE, ACQUIRE, ""),
        protocol("fence.acq_rel.gpu; st.relaxed.gpu.SPACE.u32 [%cells+128], 1;", ACQUIRE, ""),
        protocol(RELEASE, READ, "fence.acq_rel.gpu;"),
        protocol("fence.sc.gpu; st.relaxed.gpu.SPACE.u32 [%cells+128], 1;", READ, "fence.sc.sys;"),
        protocol(
            "membar.gl; st.volatile.SPACE.u32 [%cells+128], 1;",
            "ld.volatile.SPACE.u32 %v, [%cells+128];",
            "membar.gl;",
        ),
        protocol(
            "fence.release.gpu; st.relaxed.gpu.SPACE.u32 [%cells+128], 1;",
            READ,
            "fence.acquire.gpu;",
        ),
        protocol("red.release.gpu.SPACE.add.u32 [%cells+128], 1;", ACQUIRE, ""),
        protocol(RELEASE, "atom.acq_rel.gpu.SPACE.cas.b32 %v, [%cells+128], 1, 2;", ""),
        // The reader may see what an atomic made of the released value.
        protocol(
            "st.release.gpu.SPACE.u32 [%cells+128], 1; red.relaxed.gpu.SPACE.add.u32 [%cells+128], 4;",
            "ld.acquire.gpu.SPACE.u32 %v, [%cells+128]; shr.u32 %v, %v, 2;",
            "",
        ),
        protocol("st.release.sys.SPACE.u32 [%cells+128], 1;", ACQUIRE, ""),
    ]
}

fn unordered() -> Vec<Protocol> {
    let protocol = |writer, reader, after| Protocol { writer, reader, after };
    vec![
        protocol(RELAXED, READ, ""),
        protocol(RELEASE, READ, ""),
        protocol(RELAXED, ACQUIRE, ""),
        protocol("fence.acq_rel.gpu; st.relaxed.gpu.SPACE.u32 [%cells+128], 1;", READ, ""),
        protocol(RELAXED, READ, "fence.acq_rel.gpu;"),
        // A fence behind the flag's write comes too late.
        protocol("st.relaxed.gpu.SPACE.u32 [%cells+128], 1; fence.acq_rel.gpu;", ACQUIRE, ""),
        // Fences of one direction, the wrong ones.
        protocol(
            "fence.acquire.gpu; st.relaxed.gpu.SPACE.u32 [%cells+128], 1;",
            READ,
            "fence.acquire.gpu;",
        ),
        protocol(
            "fence.release.gpu; st.relaxed.gpu.SPACE.u32 [%cells+128], 1;",
            READ,
            "fence.release.gpu;",
        ),
    ]
}

#[test]
fn messages_that_arrive() {
    let places = [(SameWarp, "global"), (SameCta, "global"), (OtherCta, "global")];
    let places = places.into_iter().chain([(SameWarp, "shared"), (SameCta, "shared")]);
    for (reader, space) in places {
        for (number, protocol) in ordered().iter().enumerate() {
            let kernel = message(protocol, space);
            for schedule in schedules(6) {
                let over = shape(2, 64).dynamic_shared(512).schedule(schedule);
                // Shared cells must hold something before the flag is first read.
                let over = if space == "shared" { Shape { grid: [1; 3], ..over } } else { over };
                let (run, got) = pass(&kernel, reader, &over);
                let races = run.errors().into_iter().filter(|kind| *kind != "uninitialised");
                assert_eq!(races.count(), 0, "{reader:?} {space} {number}:\n{}", run.shown());
                assert_eq!(got, 42, "{reader:?} {space} {number} {schedule}");
            }
        }
    }
}

#[test]
fn messages_that_race() {
    let places = [(SameWarp, "global"), (SameCta, "shared"), (OtherCta, "global")];
    for (reader, space) in places {
        for (number, protocol) in unordered().iter().enumerate() {
            let kernel = message(protocol, space);
            let lines = [kernel.line("read"), kernel.line("write")];
            for schedule in schedules(4) {
                let over = shape(2, 64).dynamic_shared(512).schedule(schedule);
                let (run, _) = pass(&kernel, reader, &over);
                let found = run.findings.iter().any(|found| {
                    let places: Vec<_> = found.places.iter().map(|at| at.ptx_line).collect();
                    found.kind == "race" && places == lines
                });
                assert!(found, "{reader:?} {space} {number} {schedule}:\n{}", run.shown());
            }
        }
    }
}

/// Scopes must include the other side: CTA scope does within a CTA and does not across.
#[test]
fn scopes_that_do_not_include_the_other_side() {
    let narrow = [
        Protocol {
            writer: "st.release.cta.SPACE.u32 [%cells+128], 1;",
            reader: "ld.acquire.cta.SPACE.u32 %v, [%cells+128];",
            after: "",
        },
        Protocol {
            writer: "fence.acq_rel.cta; st.relaxed.gpu.SPACE.u32 [%cells+128], 1;",
            reader: READ,
            after: "fence.acq_rel.cta;",
        },
        Protocol { writer: RELEASE, reader: READ, after: "fence.sc.cta;" },
    ];
    for (number, protocol) in narrow.iter().enumerate() {
        for (reader, errors) in [(SameCta, vec![]), (OtherCta, vec!["race"])] {
            let kernel = message(protocol, "global");
            for schedule in schedules(4) {
                let (run, _) = pass(&kernel, reader, &shape(2, 64).schedule(schedule));
                assert_eq!(run.errors(), errors, "{number} {reader:?}:\n{}", run.shown());
            }
        }
    }
}

/// A weak flag races itself, whatever it seems to order.
#[test]
fn a_flag_without_an_ordering_races() {
    let protocol = Protocol {
        writer: "fence.sc.gpu; st.global.u32 [%cells+128], 1;",
        reader: "ld.global.u32 %v, [%cells+128];",
        after: "fence.sc.gpu;",
    };
    let kernel = message(&protocol, "global");
    for schedule in schedules(4) {
        let (run, _) = pass(&kernel, OtherCta, &shape(2, 64).schedule(schedule));
        assert_eq!(run.errors(), ["race"]);
        run.at("race", &[kernel.line("read"), kernel.line("write")]);
        assert!(run.findings.len() >= 2, "{}", run.shown());
    }
}

#[test]
fn store_buffering() {
    let run = |[write, fence, read]: [&str; 3], schedule| {
        let words = [("first", write), ("between", fence), ("then", read)];
        let kernel = Kernel::new(&filled(&words), "buffering");
        let mut stream = Stream::default();
        let (out, cells) =
            (stream.buffer("out", &[7_u32; 2]), stream.buffer("cells", &[0_u32; 64]));
        let run = stream.launch(&kernel, &shape(2, 1).schedule(schedule), arguments![out, cells]);
        (run, stream.read::<u32>(out))
    };
    let strong = [
        "st.relaxed.gpu.global.u32 [%mine], 1;",
        "fence.sc.gpu;",
        "ld.relaxed.gpu.global.u32 %v, [%other];",
    ];
    let weak = ["st.global.u32 [%mine], 1;", "fence.sc.gpu;", "ld.global.u32 %v, [%other];"];
    let mut outcomes = std::collections::BTreeSet::new();
    for schedule in schedules(40) {
        let (found, out) = run(strong, schedule);
        found.clean();
        assert_ne!(out, [0, 0], "forbidden between fence.sc, {schedule}");
        outcomes.insert(out);
        // Fences do not make weak accesses ordered: nobody read a flag.
        assert_eq!(run(weak, schedule).0.errors(), ["race"], "{schedule}");
    }
    assert!(outcomes.contains(&vec![0, 1]) && outcomes.contains(&vec![1, 0]), "{outcomes:?}");
}

#[test]
fn causality_through_a_third_cta() {
    let cases = [
        ("st.release.gpu.global.u32 [%cells+256], 1;", vec![]),
        ("atom.acq_rel.gpu.global.exch.b32 %v, [%cells+256], 1;", vec![]),
        ("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%cells+256], 1;", vec![]),
        ("st.relaxed.gpu.global.u32 [%cells+256], 1;", vec!["race"]),
        ("st.release.cta.global.u32 [%cells+256], 1;", vec!["race"]),
    ];
    for (forward, errors) in cases {
        let kernel = Kernel::new(&filled(&[("forward", forward)]), "relay");
        for schedule in schedules(8) {
            let mut stream = Stream::default();
            let (out, cells) =
                (stream.buffer("out", &[0_u32]), stream.buffer("cells", &[0_u32; 96]));
            let over = shape(3, 1).schedule(schedule);
            let run = stream.launch(&kernel, &over, arguments![out, cells]);
            assert_eq!(run.errors(), errors, "{forward} {schedule}:\n{}", run.shown());
            assert_eq!(stream.read::<u32>(out), [42]);
            if !errors.is_empty() {
                run.at("race", &[kernel.line("last"), kernel.line("first")]);
            }
        }
    }
}
