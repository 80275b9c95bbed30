//! Branches, calls, ends, and instructions without effect on a result.

use super::modifiers::{Modifiers, Peek};
use crate::ir::Op;

pub(super) fn skeleton(opcode: &str, words: Peek<'_, '_>) -> Option<Op> {
    let uni = false;
    let name = || [&[opcode], words.0].concat().join(".");
    Some(match opcode {
        "bra" => Op::Bra { uni },
        "brx" => Op::BrxIdx { uni },
        "call" => Op::Call { uni },
        "ret" => Op::Ret { uni },
        "exit" => Op::Exit,
        "trap" => Op::Trap,
        "brkpt" => Op::Brkpt,
        "nanosleep" => Op::Nanosleep,
        _ if listed(NOTHING, opcode, words) => Op::Nop { name: name() },
        _ if listed(HINTS, opcode, words) => Op::Hint { name: name() },
        _ if listed(POLICIES, opcode, words) => Op::Createpolicy { name: name() },
        _ if listed(FAMILIES, opcode, words) || bulk(opcode, words) => Op::Opaque { name: name() },
        _ => return None,
    })
}

/// Instructions that are kept as text: opcodes, and the words that may come first behind them. The
/// rest is as written.
type Named = &'static [(&'static str, &'static [&'static str])];

const NOTHING: Named = &[
    ("griddepcontrol", &["wait", "launch_dependents"]),
    ("setmaxnreg", &["inc", "dec"]),
    ("pmevent", &["mask"]),
];
const HINTS: Named = &[
    ("prefetch", &["global", "local", "const", "param", "tensormap", "L1", "L2"]),
    ("prefetchu", &["L1"]),
    ("applypriority", &["global", "L2::evict_normal"]),
    ("discard", &["global", "L2"]),
];
const POLICIES: Named = &[("createpolicy", &["fractional", "range", "cvt"])];
#[rustfmt::skip]
const FAMILIES: Named = &[
        ("wgmma", &["fence", "mma_async", "commit_group", "wait_group"]),
        ("tcgen05", &[
            "alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "wait::ld", "wait::st", "cp",
            "shift", "mma", "commit", "fence::before_thread_sync", "fence::after_thread_sync",
        ]),
        ("tensormap", &["replace", "cp_fenceproxy"]),
        ("clusterlaunchcontrol", &["try_cancel", "query_cancel"]),
        ("multimem", &["ld_reduce", "st", "red", "cp"]),
        ("wmma", &["load", "store", "mma"]),
        ("st", &["async", "bulk"]),
        ("red", &["async"]),
        ("mma", &["sp", "sp::ordered_metadata"]),
    ];

fn listed(names: Named, opcode: &str, words: Peek<'_, '_>) -> bool {
    names.iter().any(|(name, first)| {
        *name == opcode && words.0.first().is_some_and(|word| first.contains(word))
    })
}

fn bulk(opcode: &str, words: Peek<'_, '_>) -> bool {
    let starts = words.starts(&["async", "bulk"]) || words.starts(&["reduce", "async", "bulk"]);
    opcode == "cp" && starts
}

pub(super) fn jump(m: &mut Modifiers<'_>, opcode: &str, uni: &mut bool) {
    m.opcode(opcode);
    if opcode == "brx" {
        m.word("idx");
    }
    m.flag("uni", uni);
}

/// An instruction whose name is the whole text.
pub(super) fn named(m: &mut Modifiers<'_>, name: &str) {
    m.whole(name);
}
