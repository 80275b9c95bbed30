//! Loads, stores, atomics, asynchronous copies, matrices.

use super::{
    modifiers::{Modifiers, Peek, Semantics},
    types::*,
};
use crate::ir::{Atomic, Op, Ordering, Scalar, Scalar::*, Scope, Space};

/// Cache operators, eviction priorities and prefetch sizes: no effect on a value.
#[rustfmt::skip]
const HINTS: &[&str] = &[
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::cache_hint",
    "L2::64B", "L2::128B", "L2::256B",
];
const COPY_HINTS: &[&str] = &["L2::cache_hint", "L2::64B", "L2::128B", "L2::256B"];
const POLICY: &[&str] = &["L2::cache_hint"];

const LOADS: &[Semantics] = &[
    Semantics::Weak,
    Semantics::Volatile,
    Semantics::Relaxed,
    Semantics::Acquire,
    Semantics::Mmio,
];
const STORES: &[Semantics] = &[
    Semantics::Weak,
    Semantics::Volatile,
    Semantics::Relaxed,
    Semantics::Release,
    Semantics::Mmio,
];
const UPDATES: &[Semantics] =
    &[Semantics::Relaxed, Semantics::Acquire, Semantics::Release, Semantics::AcqRel];

pub(super) fn skeleton(opcode: &str, words: Peek<'_, '_>) -> Option<Op> {
    let (space, ty, hints) = (Space::Generic, B32, Vec::new());
    let (shape, matrix) = ("m8n8".to_owned(), "b16".to_owned());
    Some(match opcode {
        "ld" => Op::Ld { space, ordering: Ordering::Weak, ty, vector: 1, nc: false, hints },
        "st" if !words.starts(&["async"]) && !words.starts(&["bulk"]) => {
            Op::St { space, ordering: Ordering::Weak, ty, vector: 1, hints }
        }
        "atom" | "red" if !words.starts(&["async"]) => Op::Atom {
            op: Atomic::Add,
            result: opcode == "atom",
            space,
            ordering: Ordering::Relaxed(Scope::Gpu),
            ty,
            vector: 1,
            noftz: false,
            hints,
        },
        "cp" if words.starts(&["async", "commit_group"]) => Op::CpAsyncCommit,
        "cp" if words.starts(&["async", "wait_all"]) => Op::CpAsyncWait { all: true },
        "cp" if words.starts(&["async", "wait_group"]) => Op::CpAsyncWait { all: false },
        "cp" if words.starts(&["async", "mbarrier"]) => {
            Op::CpAsyncMbarrierArrive { noinc: false, space }
        }
        "cp" if copies_to_shared(words) => Op::CpAsync { cg: false, hints },
        "ldmatrix" => Op::Ldmatrix { number: 1, trans: false, space, shape, ty: matrix },
        "stmatrix" => Op::Stmatrix { number: 1, trans: false, space, shape, ty: matrix },
        "movmatrix" => Op::Movmatrix,
        "mma" if words.starts(&["sync", "aligned"]) => {
            Op::Mma { m: 0, n: 0, k: 0, d: F32, a: F16, b: F16, c: F32, satfinite: false }
        }
        _ => return None,
    })
}

/// `cp.async` from global to shared memory, the one direction there is.
fn copies_to_shared(words: Peek<'_, '_>) -> bool {
    const WORDS: [&[&str]; 3] = [&["ca", "cg"], &["shared", "shared::cta"], &["global"]];
    let said = words.0.iter().skip(1);
    words.starts(&["async"])
        && words.0.len() > WORDS.len()
        && said.zip(WORDS).all(|(word, allowed)| allowed.contains(word))
}

/// An mma with block scales, of a layout other than row by column, or on single bits has no typed
/// form.
pub(super) fn mma_is_opaque(words: Peek<'_, '_>) -> bool {
    let untyped = |word: &&str| word.starts_with("kind::") || ["b1", "popc"].contains(word);
    let layout = words.0.iter().filter(|word| ["row", "col"].contains(word)).copied();
    let layout: Vec<&str> = layout.collect();
    let other_layout = layout.len() == 2 && layout != ["row", "col"];
    words.starts(&["sync"]) && (words.0.iter().any(untyped) || other_layout)
}

/// Where the modifiers of a load or a store go.
pub(super) struct Access<'a> {
    pub space: &'a mut Space,
    pub ordering: &'a mut Ordering,
    pub ty: &'a mut Scalar,
    pub vector: &'a mut u8,
    pub hints: &'a mut Vec<String>,
}

/// `nc` is there for a load.
pub(super) fn access(m: &mut Modifiers<'_>, nc: Option<&mut bool>, access: Access<'_>) {
    m.opcode(if nc.is_some() { "ld" } else { "st" });
    m.ordering(access.ordering, Ordering::Weak, if nc.is_some() { LOADS } else { STORES });
    m.or(access.space, Space::Generic, SPACES);
    if let Some(nc) = nc {
        m.flag("nc", nc);
    }
    m.hints(HINTS, access.hints);
    m.count('v', access.vector, Some(1), &[2, 4, 8]);
    m.one(access.ty, STORED);
}

/// Where the modifiers of an atomic update go.
pub(super) struct Update<'a> {
    pub op: &'a mut Atomic,
    pub noftz: &'a mut bool,
    pub access: Access<'a>,
}

pub(super) fn update(m: &mut Modifiers<'_>, result: bool, update: Update<'_>) {
    use Atomic::*;
    let access = update.access;
    m.opcode(if result { "atom" } else { "red" });
    m.ordering(access.ordering, Ordering::Relaxed(Scope::Gpu), UPDATES);
    m.or(access.space, Space::Generic, GLOBAL_SHARED);
    m.one(
        update.op,
        if result {
            &[And, Or, Xor, Add, Inc, Dec, Min, Max, Exch, Cas]
        } else {
            &[And, Or, Xor, Add, Inc, Dec, Min, Max]
        },
    );
    m.flag("noftz", update.noftz);
    m.hints(POLICY, access.hints);
    m.count('v', access.vector, Some(1), &[2, 4, 8]);
    m.one(access.ty, UPDATED);
}

pub(super) fn cp_async(m: &mut Modifiers<'_>, cg: &mut bool, hints: &mut Vec<String>) {
    m.opcode("cp");
    m.word("async");
    m.either(["ca", "cg"], cg);
    m.one(&mut Space::Shared, &[Space::Shared]);
    m.word("global");
    m.hints(COPY_HINTS, hints);
}

pub(super) fn cp_async_group(m: &mut Modifiers<'_>, what: &str) {
    m.opcode("cp");
    m.word("async");
    m.word(what);
}

pub(super) fn cp_async_arrive(m: &mut Modifiers<'_>, noinc: &mut bool, space: &mut Space) {
    m.opcode("cp");
    m.word("async");
    m.word("mbarrier");
    m.word("arrive");
    m.flag("noinc", noinc);
    m.or(space, Space::Generic, &[Space::Shared]);
    m.word("b64");
}

/// Where the modifiers of `ldmatrix` and `stmatrix` go.
pub(super) struct Matrix<'a> {
    pub number: &'a mut u8,
    pub trans: &'a mut bool,
    pub space: &'a mut Space,
    pub shape: &'a mut String,
    pub ty: &'a mut String,
}

pub(super) fn matrix(m: &mut Modifiers<'_>, opcode: &str, matrix: Matrix<'_>) {
    m.opcode(opcode);
    m.word("sync");
    m.word("aligned");
    m.spelled(&["m8n8", "m16n8", "m8n16", "m16n16"], matrix.shape);
    m.count('x', matrix.number, None, &[1, 2, 4]);
    m.flag("trans", matrix.trans);
    m.or(matrix.space, Space::Generic, &[Space::Shared]);
    m.spelled(&["b16", "b8"], matrix.ty);
}

pub(super) fn movmatrix(m: &mut Modifiers<'_>) {
    m.opcode("movmatrix");
    for word in ["sync", "aligned", "m8n8", "trans", "b16"] {
        m.word(word);
    }
}

/// The shapes of `mma.sync`, as m, n, k.
#[rustfmt::skip]
const SHAPES: &[(u16, u16, u16)] = &[
    (8, 8, 4), (8, 8, 16), (8, 8, 32), (8, 8, 128), (16, 8, 4), (16, 8, 8), (16, 8, 16), (16, 8, 32),
    (16, 8, 64), (16, 8, 128), (16, 8, 256),
];

pub(super) fn mma(
    m: &mut Modifiers<'_>,
    shape: [&mut u16; 3],
    types: [&mut Scalar; 4],
    satfinite: &mut bool,
) {
    const PRODUCTS: &[Scalar] =
        &[F16, BF16, TF32, F64, U8, S8, U4, S4, E4m3, E5m2, E2m1, E2m3, E3m2];
    m.opcode("mma");
    m.word("sync");
    m.word("aligned");
    let names: Vec<String> = SHAPES.iter().map(|(m, n, k)| format!("m{m}n{n}k{k}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut at =
        SHAPES.iter().position(|&known| known == (*shape[0], *shape[1], *shape[2])).unwrap_or(0);
    m.index(&names, &mut at);
    for (side, size) in shape.into_iter().zip(<[u16; 3]>::from(SHAPES[at])) {
        *side = size;
    }
    m.word("row");
    m.word("col");
    m.flag("satfinite", satfinite);
    let [d, a, b, c] = types;
    m.one(d, &[F16, F32, F64, S32]);
    m.one(a, PRODUCTS);
    m.one(b, PRODUCTS);
    m.one(c, &[F16, F32, F64, S32]);
}
