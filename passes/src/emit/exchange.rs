//! Values change lanes: the operations that make the moves of `routes.rs`.
//!
//! # Invariants
//! - **X1** After an exchange every lane holds the bytes that its partner held.
//! - **X2** Of a pair, the first is the value of the lane whose bit is clear, the second of the
//!   lane whose bit is set, in both lanes; where operands commute, own and other will do.
//! # Held by
//! X1: the tables of `routes.rs`. X2: [`pair`], [`half_pair`].
//! # Not here
//! Which exchanges a plan makes (`mod.rs`).

pub mod routes;
mod words;

use bitstable_lowering::plan::{LaneBit, Operands};
use melior::ir::{
    Attribute, Type, ValueLike,
    attribute::{BoolAttribute, IntegerAttribute},
    r#type::IntegerType,
};

use crate::{build::Builder, emit::combine::Combine, ir::Val, target::Target};
use routes::{Broadcast, Family, Move};
use words::{Density, Packed, cast};

/// Left and right operands.
pub type Pair<'c> = (Vec<Val<'c>>, Vec<Val<'c>>);

/// Whether values can be exchanged on `target` at all.
pub fn supported(target: &Target) -> bool {
    Family::of(target).is_some()
}

fn family(target: &Target) -> Family {
    match Family::of(target) {
        Some(family) => family,
        None => panic!("no way to exchange values on {target:?}, which is refused before"),
    }
}

/// For each of `values`, what the lane `l ^ (1 << lane_bit)` holds.
pub fn exchange_xor<'c>(
    b: Builder<'c>,
    target: &Target,
    lane_bit: LaneBit,
    values: &[Val<'c>],
) -> Vec<Val<'c>> {
    let route = routes::exchange(family(target), lane_bit);
    if let [Move::Swap(_)] = route {
        let is_set = lane_bit_is_set(b, target, lane_bit);
        let (clear, set) = swapped(b, lane_bit, values, values);
        return select(b, is_set, &clear, &set);
    }
    let density = density(route);
    let packed = Packed::pack(b, values, density);
    let mut words = packed.words.clone();
    for &step in route {
        words = words.into_iter().map(|word| moved(b, target, step, word)).collect();
    }
    packed.unpack(b, &words)
}

fn density(route: &[Move]) -> Density {
    if route.iter().all(|step| step.costs()) { Density::Shared } else { Density::Alone }
}

/// Whether the bit is set in the number of this lane: an `i1`.
pub fn lane_bit_is_set<'c>(b: Builder<'c>, target: &Target, lane_bit: LaneBit) -> Val<'c> {
    let mask = b.i32(1 << lane_bit.0);
    let bit = b.one("llvm.and", &[thread(b, target), mask], word_type(b), &[]);
    let ne = integer(b, 64, 1);
    b.one(
        "llvm.icmp",
        &[bit, b.i32(0)],
        IntegerType::new(b.context(), 1).into(),
        &[("predicate", ne)],
    )
}

/// The number of the thread in its CTA, whose low bits are the lane, as Triton counts lanes.
fn thread<'c>(b: Builder<'c>, target: &Target) -> Val<'c> {
    let name = match target {
        Target::Nvidia { .. } => "nvvm.read.ptx.sreg.tid.x",
        Target::Amd { .. } => "rocdl.workitem.id.x",
    };
    b.one(name, &[], word_type(b), &[])
}

/// The operands of a combine of every value with its partner's.
pub fn pair<'c>(
    b: Builder<'c>,
    target: &Target,
    operands: Operands,
    lane_bit: LaneBit,
    values: &[Val<'c>],
) -> Pair<'c> {
    let family = family(target);
    if let [Move::Swap(_)] = routes::exchange(family, lane_bit) {
        return swapped(b, lane_bit, values, values);
    }
    if let (Operands::Ordered, Some(sides)) = (operands, routes::sides(family, lane_bit)) {
        let [left, right] = sides.map(|control| through(b, target, Move::Dpp(control), values));
        return (left, right);
    }
    let other = exchange_xor(b, target, lane_bit, values);
    ordered(b, target, operands, lane_bit, (values.to_vec(), other))
}

fn through<'c>(b: Builder<'c>, target: &Target, step: Move, values: &[Val<'c>]) -> Vec<Val<'c>> {
    let packed = Packed::pack(b, values, density(&[step]));
    let words: Vec<_> = packed.words.iter().map(|&word| moved(b, target, step, word)).collect();
    packed.unpack(b, &words)
}

/// The operands of the combines of a half exchange: the lane whose bit is clear keeps `low` and
/// gives `high` away, its partner the other way round.
pub fn half_pair<'c>(
    b: Builder<'c>,
    target: &Target,
    operands: Operands,
    lane_bit: LaneBit,
    (low, high): (&[Val<'c>], &[Val<'c>]),
) -> Pair<'c> {
    if let [Move::Swap(_)] = routes::exchange(family(target), lane_bit) {
        return swapped(b, lane_bit, low, high);
    }
    let is_set = lane_bit_is_set(b, target, lane_bit);
    let sent = select(b, is_set, low, high);
    let kept = select(b, is_set, high, low);
    let received = exchange_xor(b, target, lane_bit, &sent);
    ordered(b, target, operands, lane_bit, (kept, received))
}

fn ordered<'c>(
    b: Builder<'c>,
    target: &Target,
    operands: Operands,
    lane_bit: LaneBit,
    (own, other): Pair<'c>,
) -> Pair<'c> {
    match operands {
        Operands::Commute => (own, other),
        Operands::Ordered => {
            let is_set = lane_bit_is_set(b, target, lane_bit);
            (select(b, is_set, &other, &own), select(b, is_set, &own, &other))
        }
    }
}

/// The first where the bit is set, else the second.
fn select<'c>(b: Builder<'c>, bit: Val<'c>, set: &[Val<'c>], clear: &[Val<'c>]) -> Vec<Val<'c>> {
    let pick = |(&s, &c): (&Val<'c>, &Val<'c>)| b.one("llvm.select", &[bit, s, c], s.r#type(), &[]);
    set.iter().zip(clear).map(pick).collect()
}

/// `v_permlane16_swap_b32` or `v_permlane32_swap_b32`: the lanes whose bit is set of `low` change
/// places with the lanes whose bit is clear of `high`.
fn swapped<'c>(b: Builder<'c>, bit: LaneBit, low: &[Val<'c>], high: &[Val<'c>]) -> Pair<'c> {
    let name = format!("rocdl.permlane{}.swap", 1u32 << bit.0);
    let (first, second) =
        (Packed::pack(b, low, Density::Shared), Packed::pack(b, high, Density::Shared));
    let i32 = word_type(b);
    let both = b.ty("!llvm.struct<(i32, i32)>");
    let attrs = [("fi", b.attr("false")), ("boundControl", b.attr("false"))];
    let swap = |(&x, &y): (&Val<'c>, &Val<'c>)| {
        let swapped = b.one(&name, &[cast(b, x, i32), cast(b, y, i32)], both, &attrs);
        let part = |i: usize, ty| {
            let position = b.attr(&format!("array<i64: {i}>"));
            let word = b.one("llvm.extractvalue", &[swapped], i32, &[("position", position)]);
            cast(b, word, ty)
        };
        (part(0, x.r#type()), part(1, y.r#type()))
    };
    let (left, right): Pair<'c> = first.words.iter().zip(&second.words).map(swap).unzip();
    (first.unpack(b, &left), second.unpack(b, &right))
}

/// Folds the lowest `lane_bits` lane bits of one value (`values` holds it for each operand of the
/// reduction): the canonical tree in one lane, then its broadcast. Nothing where the target has no
/// such fold.
pub fn wave_fold<'c>(
    b: Builder<'c>,
    target: &Target,
    combine: &Combine<'c>,
    values: &[Val<'c>],
    lane_bits: u32,
) -> Option<Vec<Val<'c>>> {
    let fold = routes::fold(Family::of(target)?, lane_bits)?;
    let mut own = values.to_vec();
    for &control in fold.moves {
        let lower = through(b, target, Move::Dpp(control), &own);
        own = combine.apply(b, &lower, &own);
    }
    Some(match fold.broadcast {
        Broadcast::Dpp(control) => through(b, target, Move::Dpp(control), &own),
        Broadcast::ReadLane(lane) => {
            let packed = Packed::pack(b, &own, Density::Shared);
            let lane = b.i32(lane as i32);
            let read = |&word: &Val<'c>| b.one("rocdl.readlane", &[word, lane], word.r#type(), &[]);
            packed.unpack(b, &packed.words.iter().map(read).collect::<Vec<_>>())
        }
    })
}

fn word_type<'c>(b: Builder<'c>) -> Type<'c> {
    IntegerType::new(b.context(), 32).into()
}

fn integer<'c>(b: Builder<'c>, bits: u32, value: i64) -> Attribute<'c> {
    IntegerAttribute::new(IntegerType::new(b.context(), bits).into(), value).into()
}

/// One word through one move.
fn moved<'c>(b: Builder<'c>, target: &Target, step: Move, word: Val<'c>) -> Val<'c> {
    let (ty, i32) = (word.r#type(), word_type(b));
    match step {
        Move::Shuffle(mask) => {
            let operands = [b.i32(-1), word, b.i32(mask as i32), b.i32(31)];
            let kind = [("kind", b.attr("#nvvm<shfl_kind bfly>"))];
            b.one("nvvm.shfl.sync", &operands, ty, &kind)
        }
        Move::Dpp(control) => {
            // Lanes that read nothing get zero. All rows and banks take part, also those whose
            // result nobody wants: only so does LLVM make the move a part of its user.
            let all = integer(b, 32, 15);
            let attrs = [
                ("dppCtrl", integer(b, 32, control.encoding().into())),
                ("rowMask", all),
                ("bankMask", all),
                ("boundCtrl", BoolAttribute::new(b.context(), true).into()),
            ];
            let old = b.one("llvm.mlir.zero", &[], ty, &[]);
            b.one("rocdl.update.dpp", &[old, word], ty, &attrs)
        }
        Move::Swizzle(mask) => {
            // Bit-mask mode: and 0x1f, or 0, xor `mask`.
            let pattern = b.i32((0x1f | (mask << 10)) as i32);
            cast(b, b.one("rocdl.ds_swizzle", &[cast(b, word, i32), pattern], i32, &[]), ty)
        }
        Move::Bpermute(mask) => {
            let thread = thread(b, target);
            let from = b.one("llvm.xor", &[thread, b.i32(mask as i32)], i32, &[]);
            let address = b.one("llvm.shl", &[from, b.i32(2)], i32, &[]);
            cast(b, b.one("rocdl.ds_bpermute", &[address, cast(b, word, i32)], i32, &[]), ty)
        }
        Move::PermlaneX16 => {
            let word = cast(b, word, i32);
            let lanes = [b.i32(0x7654_3210), b.i32(0xfedc_ba98_u32.cast_signed())];
            let attrs = [("fi", b.attr("true")), ("boundControl", b.attr("false"))];
            cast(b, b.one("rocdl.permlanex16", &[word, word, lanes[0], lanes[1]], i32, &attrs), ty)
        }
        Move::Swap(_) => unreachable!("a swap moves two registers at once"),
    }
}

#[cfg(test)]
mod tests;
