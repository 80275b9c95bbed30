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
        "griddepcontrol" | "setmaxnreg" | "pmevent" => Op::Nop { name: name() },
        "prefetch" | "prefetchu" | "applypriority" | "discard" => Op::Hint { name: name() },
        "createpolicy" => Op::Createpolicy { name: name() },
        _ if opaque(opcode, words) => Op::Opaque { name: name() },
        _ => return None,
    })
}

/// Families that are kept as text. Their first words are known; the rest is as written.
fn opaque(opcode: &str, words: Peek<'_, '_>) -> bool {
    #[rustfmt::skip]
    const FAMILIES: &[(&str, &[&str])] = &[
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
    let bulk = |words: Peek<'_, '_>| {
        words.starts(&["async", "bulk"]) || words.starts(&["reduce", "async", "bulk"])
    };
    let listed = FAMILIES.iter().any(|(family, seconds)| {
        *family == opcode && words.0.first().is_some_and(|word| seconds.contains(word))
    });
    listed || (opcode == "cp" && bulk(words))
}

pub(super) fn jump(m: &mut Modifiers<'_>, opcode: &str, uni: &mut bool) {
    m.opcode(opcode);
    if opcode == "brx" {
        m.word("idx");
    }
    m.flag("uni", uni);
}

/// An instruction whose name is the whole text.
pub(super) fn named(m: &mut Modifiers<'_>, name: &mut String) {
    m.whole(name);
}
