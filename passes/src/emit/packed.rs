//! Two values side by side: one instruction for two combines.
//!
//! # Idea
//! Some machines add two floats for the price of one, where they lie in two neighbouring registers
//! or in the halves of one. Each lane of such an instruction rounds as the scalar one does, so it
//! changes no bit; it only pays where the values lie side by side without a move.
//! # Invariants
//! - **D1** A packed instruction states its own rounding and keeps subnormals: it is assembly, which
//!   nothing contracts, without `.ftz`.
//! - **D2** [`Packing::pack`] of what [`Packing::unpack`] gave is the packed value itself, so
//!   consecutive packed instructions leave their values where they are.
//! # Held by
//! D1: [`instruction`]; PTX ISA 9.0, sections 9.7.3 and 9.7.4 (`add`, `sub`, `mul`, `fma` on
//! `.f32x2` from sm_100 on, on `.f16x2` from sm_53, on `.bf16x2` from sm_90; `fma` from sm_80).
//! D2: `pack`, which looks where its operands come from.
//! # Not here
//! Which values are worth it (`fold.rs`), and what a combine function consists of (`combine.rs`).

use melior::ir::Type;

use super::combine::float::{self, FloatOp};
use crate::{build::Builder, element::Element, ir, ir::Val, target::Target};

/// How two values of one element type are held side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packing {
    element: Element,
}

impl Packing {
    /// The packing of `element` in which `target` has all of `ops`.
    pub fn new(target: &Target, element: Element, ops: &[FloatOp]) -> Option<Packing> {
        let all = ops.iter().all(|&op| instruction(target, op, element).is_some());
        all.then_some(Packing { element })
    }

    /// Whether each value has a register of its own, so that any instruction can put its result
    /// next to another's. Halves of one register are side by side only as they were loaded.
    pub fn takes_registers(self) -> bool {
        self.element.bits() == 32
    }

    /// `low` and `high` side by side.
    pub fn pack<'c>(self, b: Builder<'c>, low: Val<'c>, high: Val<'c>) -> Val<'c> {
        if let (Some(pair), Some(same)) = (lane_of(b, low, 0), lane_of(b, high, 1))
            && pair == same
        {
            return pair;
        }
        let ty = self.vector(b);
        let mut pair = b.one("llvm.mlir.undef", &[], ty, &[]);
        for (lane, value) in [low, high].into_iter().enumerate() {
            pair = b.one("llvm.insertelement", &[pair, value, b.i32(lane as i32)], ty, &[]);
        }
        pair
    }

    /// The two values of a pair.
    pub fn unpack<'c>(self, b: Builder<'c>, pair: Val<'c>) -> [Val<'c>; 2] {
        let ty = b.ty(&self.element.name());
        [0, 1].map(|lane| b.one(EXTRACT, &[pair, b.i32(lane)], ty, &[]))
    }

    /// `low` and `high`, side by side until here: what LLVM makes vectors of before it is grouped
    /// as it was loaded, not as it is used.
    pub fn beside<'c>(self, b: Builder<'c>, low: Val<'c>, high: Val<'c>) -> [Val<'c>; 2] {
        let ty = self.element.name();
        let word = b.one("llvm.bitcast", &[self.pack(b, low, high)], b.ty("i64"), &[]);
        let both = b.ty(&format!("!llvm.struct<({ty}, {ty})>"));
        let pair = float::assembly(b, "mov.b64 {$0, $1}, $2;", "=f,=f,l", &[word], both);
        [0, 1].map(|lane| {
            let position = b.attr(&format!("array<i64: {lane}>"));
            b.one("llvm.extractvalue", &[pair], b.ty(&ty), &[("position", position)])
        })
    }

    /// Emits `op` on pairs.
    ///
    /// # Panics
    /// On an operation that [`Packing::new`] was not asked for.
    pub fn emit<'c>(
        self,
        b: Builder<'c>,
        target: &Target,
        op: FloatOp,
        pairs: &[Val<'c>],
    ) -> Val<'c> {
        let Some(text) = instruction(target, op, self.element) else {
            panic!("{op:?} on two {:?} is no instruction of {target:?}", self.element);
        };
        let (class, word) = if self.takes_registers() { ("l", "i64") } else { ("r", "i32") };
        let word = b.ty(word);
        let cast = |value, ty| b.one("llvm.bitcast", &[value], ty, &[]);
        let words: Vec<Val<'c>> = pairs.iter().map(|&pair| cast(pair, word)).collect();
        cast(float::ptx_instruction(b, text, class, &words), self.vector(b))
    }

    fn vector<'c>(self, b: Builder<'c>) -> Type<'c> {
        b.ty(&format!("vector<2x{}>", self.element.name()))
    }
}

const EXTRACT: &str = "llvm.extractelement";

/// The pair whose lane number `lane` `value` is.
fn lane_of<'c>(b: Builder<'c>, value: Val<'c>, lane: i32) -> Option<Val<'c>> {
    let ir::Source::Result(operation, _) = ir::source(value) else { return None };
    match ir::operands(operation)[..] {
        [pair, at] if ir::name(operation) == EXTRACT && at == b.i32(lane) => Some(pair),
        _ => None,
    }
}

fn instruction(target: &Target, op: FloatOp, element: Element) -> Option<&'static str> {
    let Target::Nvidia { capability } = target else { return None };
    let (since, text) = match (op, element) {
        (FloatOp::Add, Element::F32) => (100, "add.rn.f32x2"),
        (FloatOp::Sub, Element::F32) => (100, "sub.rn.f32x2"),
        (FloatOp::Mul, Element::F32) => (100, "mul.rn.f32x2"),
        (FloatOp::Fma, Element::F32) => (100, "fma.rn.f32x2"),
        (FloatOp::Add, Element::F16) => (53, "add.rn.f16x2"),
        (FloatOp::Sub, Element::F16) => (53, "sub.rn.f16x2"),
        (FloatOp::Mul, Element::F16) => (53, "mul.rn.f16x2"),
        (FloatOp::Fma, Element::F16) => (53, "fma.rn.f16x2"),
        (FloatOp::Add, Element::Bf16) => (90, "add.rn.bf16x2"),
        (FloatOp::Sub, Element::Bf16) => (90, "sub.rn.bf16x2"),
        (FloatOp::Mul, Element::Bf16) => (90, "mul.rn.bf16x2"),
        (FloatOp::Fma, Element::Bf16) => (80, "fma.rn.bf16x2"),
        _ => return None,
    };
    (*capability >= since).then_some(text)
}
