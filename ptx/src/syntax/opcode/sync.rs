//! Barriers, fences, mbarriers.

use super::{
    modifiers::{Modifiers, Peek, Semantics},
    types::*,
};
use crate::ir::{Barrier, Logic, Mbarrier, Op, Ordering, Scope, Space};

pub(super) fn skeleton(opcode: &str, words: Peek<'_, '_>) -> Option<Op> {
    let weak = Ordering::Weak;
    Some(match opcode {
        "barrier" if words.starts(&["cluster"]) => {
            Op::BarCluster { wait: words.has("wait"), ordering: weak, aligned: false }
        }
        "bar" => Op::Bar { kind: barrier_kind(words), aligned: true },
        "barrier" => Op::Bar { kind: barrier_kind(words), aligned: words.has("aligned") },
        "fence" if words.starts(&["proxy"]) || words.starts(&["mbarrier_init"]) => {
            Op::Fence { ordering: weak, sc: false, proxy: Some(words.0.join(".")) }
        }
        "fence" => Op::Fence { ordering: Ordering::AcqRel(Scope::Gpu), sc: false, proxy: None },
        "membar" => {
            let scope = match *words.0.first()? {
                "cta" => Scope::Cta,
                "gl" => Scope::Gpu,
                "sys" => Scope::Sys,
                _ => return None,
            };
            Op::Fence { ordering: Ordering::AcqRel(scope), sc: true, proxy: None }
        }
        "mbarrier" => {
            Op::Mbarrier { op: mbarrier_kind(words)?, ordering: weak, space: Space::Generic }
        }
        _ => return None,
    })
}

fn barrier_kind(words: Peek<'_, '_>) -> Barrier {
    if words.has("arrive") {
        Barrier::Arrive
    } else if words.has("popc") {
        Barrier::RedPopc
    } else if words.has("red") {
        Barrier::Red(Logic::And)
    } else {
        Barrier::Sync
    }
}

pub(super) fn bar(m: &mut Modifiers<'_>, kind: &mut Barrier, aligned: bool, read: &str) {
    m.opcode(if aligned { "bar" } else { "barrier" });
    if read == "barrier" {
        m.flag("cta", &mut false);
        m.flag("aligned", &mut false);
    } else if read == "bar" {
        m.flag("cta", &mut false);
    }
    match kind {
        Barrier::Sync => m.word("sync"),
        Barrier::Arrive => m.word("arrive"),
        Barrier::RedPopc => {
            m.word("red");
            m.word("popc");
            m.word("u32");
        }
        Barrier::Red(logic) => {
            m.word("red");
            m.one(logic, &[Logic::And, Logic::Or]);
            m.word("pred");
        }
    }
}

pub(super) fn cluster(
    m: &mut Modifiers<'_>,
    wait: bool,
    ordering: &mut Ordering,
    aligned: &mut bool,
) {
    m.opcode("barrier");
    m.word("cluster");
    m.word(if wait { "wait" } else { "arrive" });
    if wait {
        m.flag("acquire", &mut false);
        *ordering = Ordering::Acquire(Scope::Cluster);
    } else {
        m.flag("release", &mut false);
        let mut relaxed = matches!(ordering, Ordering::Relaxed(_));
        m.flag("relaxed", &mut relaxed);
        let release = Ordering::Release(Scope::Cluster);
        *ordering = if relaxed { Ordering::Relaxed(Scope::Cluster) } else { release };
    }
    m.flag("aligned", aligned);
}

/// The whole rest of a proxy fence is its name; what `proxy` may say is listed here.
pub(super) fn proxy(m: &mut Modifiers<'_>, name: &mut String) {
    const NAMES: &[&str] = &[
        "proxy.alias",
        "proxy.async",
        "proxy.async.global",
        "proxy.async.shared::cta",
        "proxy.async.shared::cluster",
        "proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
        "proxy.async::generic.release.sync_restrict::shared::cta.cluster",
        "proxy.tensormap::generic.acquire.cta",
        "proxy.tensormap::generic.acquire.cluster",
        "proxy.tensormap::generic.acquire.gpu",
        "proxy.tensormap::generic.acquire.sys",
        "proxy.tensormap::generic.release.cta",
        "proxy.tensormap::generic.release.cluster",
        "proxy.tensormap::generic.release.gpu",
        "proxy.tensormap::generic.release.sys",
        "mbarrier_init.release.cluster",
    ];
    m.opcode("fence");
    m.phrase(NAMES, name);
}

pub(super) fn fence(m: &mut Modifiers<'_>, ordering: &mut Ordering, sc: &mut bool, read: &str) {
    m.opcode("fence");
    if read == "membar" {
        m.flag("gl", &mut false);
        m.flag("cta", &mut false);
        m.flag("sys", &mut false);
        return;
    }
    m.flag("sc", sc);
    if *sc {
        let mut scope = scope_of(*ordering);
        m.one(&mut scope, &[Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys]);
        *ordering = Ordering::AcqRel(scope);
    } else {
        const KINDS: &[Semantics] = &[Semantics::Acquire, Semantics::Release, Semantics::AcqRel];
        m.ordering(ordering, Ordering::AcqRel(Scope::Gpu), KINDS);
    }
}

fn scope_of(ordering: Ordering) -> Scope {
    match ordering {
        Ordering::Relaxed(scope)
        | Ordering::Acquire(scope)
        | Ordering::Release(scope)
        | Ordering::AcqRel(scope) => scope,
        Ordering::Weak | Ordering::Volatile | Ordering::Mmio => Scope::Gpu,
    }
}

fn mbarrier_kind(words: Peek<'_, '_>) -> Option<Mbarrier> {
    let parity = words.has("parity");
    let expect_tx = words.has("expect_tx");
    let no_complete = words.has("noComplete");
    Some(match *words.0.first()? {
        "init" => Mbarrier::Init,
        "inval" => Mbarrier::Inval,
        "arrive" => Mbarrier::Arrive { drop: false, no_complete, expect_tx },
        "arrive_drop" => Mbarrier::Arrive { drop: true, no_complete, expect_tx },
        "expect_tx" => Mbarrier::ExpectTx,
        "complete_tx" => Mbarrier::CompleteTx,
        "test_wait" => Mbarrier::Wait { try_wait: false, parity },
        "try_wait" => Mbarrier::Wait { try_wait: true, parity },
        "pending_count" => Mbarrier::PendingCount,
        _ => return None,
    })
}

pub(super) fn mbarrier(
    m: &mut Modifiers<'_>,
    op: Mbarrier,
    ordering: &mut Ordering,
    space: &mut Space,
) {
    const ARRIVE: &[Semantics] = &[Semantics::Release, Semantics::Relaxed];
    const WAIT: &[Semantics] = &[Semantics::Acquire, Semantics::Relaxed];
    m.opcode("mbarrier");
    match op {
        Mbarrier::Init => m.word("init"),
        Mbarrier::Inval => m.word("inval"),
        Mbarrier::Arrive { drop, no_complete, expect_tx } => {
            m.word(if drop { "arrive_drop" } else { "arrive" });
            if expect_tx {
                m.word("expect_tx");
            }
            if no_complete {
                m.word("noComplete");
            }
            m.ordering(ordering, Ordering::Release(Scope::Cta), ARRIVE);
        }
        Mbarrier::ExpectTx | Mbarrier::CompleteTx => {
            m.word(if op == Mbarrier::ExpectTx { "expect_tx" } else { "complete_tx" });
            m.ordering(ordering, Ordering::Relaxed(Scope::Cta), &[Semantics::Relaxed]);
        }
        Mbarrier::Wait { try_wait, parity } => {
            m.word(if try_wait { "try_wait" } else { "test_wait" });
            if parity {
                m.word("parity");
            }
            m.ordering(ordering, Ordering::Acquire(Scope::Cta), WAIT);
        }
        Mbarrier::PendingCount => m.word("pending_count"),
    }
    if op != Mbarrier::PendingCount {
        m.or(space, Space::Generic, SHARED);
    }
    m.word("b64");
}
