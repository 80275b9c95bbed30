//! Identities that hold bit for bit, applied when a node is made.
//!
//! # Idea
//! One tree reaches PTX in several spellings: `bf16` addition is `add.rn.bf16` on one target,
//! `fma.rn.bf16 x, 1, y` or an `f32` addition with a rounding on another. Nodes are kept in one
//! spelling, so that trees of different targets compare.
//! # Invariants
//! - **W1** A rewrite keeps the value for every input but the payload of a NaN.
//! - **W2** No rewrite reassociates, and none removes a rounding that can show.
//! # Held by
//! W1: the argument beside each rule; the unit tests run every `bf16` pair class on bits.

use smallvec::SmallVec;

use super::{
    Limit,
    graph::{Graph, Node, NodeId},
    label::{Label, What, format},
};
use crate::{
    ir::{FloatBinary, FloatMode, Op, Round, Scalar},
    report::Site,
};

/// A conversion without modifiers.
pub fn plain_cvt(to: Scalar, from: Scalar, round: Option<Round>) -> Op {
    Op::Cvt {
        to,
        from,
        round,
        int_round: None,
        ftz: false,
        sat: false,
        relu: false,
        satfinite: false,
    }
}

fn add(op: FloatBinary, ty: Scalar, mode: FloatMode) -> Label {
    let mode = FloatMode { round: Some(Round::Rn), ..mode };
    Label::operation(&Op::FloatBinary { op, ty, mode }, ty)
}

impl Graph {
    /// The node of `op` on `args`, in its one spelling.
    pub fn operation(
        &mut self,
        op: &Op,
        result: Scalar,
        args: &[NodeId],
        site: Site,
    ) -> Result<NodeId, Limit> {
        if let Op::Fma { ty, mode } = op
            && let Some(node) = self.degenerate_fma(*ty, *mode, args, site)?
        {
            return Ok(node);
        }
        if let Op::Cvt { to, from, .. } = op
            && let Some(node) = self.conversion(op, *to, *from, args[0], site)?
        {
            return Ok(node);
        }
        let label = self.intern(Label::operation(op, result));
        self.apply(label, args, site)
    }

    /// `fma(x, 1, y) = x + y` and `fma(x, y, -0) = x * y`, rounded to nearest: the product by one is
    /// exact, and minus zero moves no sum, a zero product included.
    fn degenerate_fma(
        &mut self,
        ty: Scalar,
        mode: FloatMode,
        args: &[NodeId],
        site: Site,
    ) -> Result<Option<NodeId>, Limit> {
        let plain = FloatMode { round: mode.round, ftz: mode.ftz, ..FloatMode::default() };
        let (Some(format), &[a, b, c]) = (format(ty), args) else {
            return Ok(None);
        };
        if mode != plain || mode.round != Some(Round::Rn) {
            return Ok(None);
        }
        let number = |node| match self.node(node) {
            Node::Constant { bits, .. } => Some(bits),
            Node::Leaf(_) | Node::Apply { .. } => None,
        };
        let (op, args) = if number(c) == Some(format.sign) {
            (FloatBinary::Mul, [a, b])
        } else if number(b) == Some(format.one) {
            (FloatBinary::Add, [a, c])
        } else if number(a) == Some(format.one) {
            (FloatBinary::Add, [b, c])
        } else {
            return Ok(None);
        };
        let label = self.intern(add(op, ty, mode));
        self.apply(label, &args, site).map(Some)
    }

    /// An exact conversion from `narrow` to `f32`.
    pub(crate) fn widen(
        &mut self,
        node: NodeId,
        narrow: Scalar,
        site: Site,
    ) -> Result<NodeId, Limit> {
        let op = plain_cvt(Scalar::F32, narrow, None);
        let label = self.intern(Label::operation(&op, Scalar::F32));
        self.apply(label, &[node], site)
    }

    /// Rounding back what was widened gives it back. Rounding one `f32` addition, subtraction or
    /// product of widened operands to nearest is that operation rounded once in the narrow type:
    /// 24 bits are at least twice 11, and 2 more (Figueroa); what is subnormal in the narrow type
    /// was exact in `f32`.
    fn conversion(
        &mut self,
        op: &Op,
        to: Scalar,
        from: Scalar,
        arg: NodeId,
        site: Site,
    ) -> Result<Option<NodeId>, Limit> {
        let narrow = matches!(to, Scalar::F16 | Scalar::BF16);
        if !narrow || *op != plain_cvt(to, Scalar::F32, Some(Round::Rn)) || from != Scalar::F32 {
            return Ok(None);
        }
        if let Some(inner) = self.widened(arg, to) {
            return Ok(Some(inner));
        }
        let Node::Apply { label, args } = self.node(arg) else {
            return Ok(None);
        };
        let What::Operation(Op::FloatBinary { op, ty: Scalar::F32, mode }) =
            &self.label(label).what
        else {
            return Ok(None);
        };
        let (op, mode) = (*op, *mode);
        let plain = FloatMode { round: mode.round, ..FloatMode::default() };
        let exact = matches!(op, FloatBinary::Add | FloatBinary::Sub | FloatBinary::Mul);
        if !exact || mode != plain || !matches!(mode.round, None | Some(Round::Rn)) {
            return Ok(None);
        }
        let args: SmallVec<[NodeId; 2]> = args.into();
        let mut inner = SmallVec::<[NodeId; 2]>::new();
        for arg in args {
            let Some(node) = self.unwidened(arg, to)? else {
                return Ok(None);
            };
            inner.push(node);
        }
        // An `f32` operation whose rounding is not written may be fused before it is rounded.
        let label = Label::operation(&Op::FloatBinary { op, ty: to, mode }, to);
        let label = self.intern(label);
        self.apply(label, &inner, site).map(Some)
    }

    /// What `arg` was before it was widened from `narrow`; a number if it is one there.
    fn unwidened(&mut self, arg: NodeId, narrow: Scalar) -> Result<Option<NodeId>, Limit> {
        if let Node::Constant { bits, ty: Scalar::F32 } = self.node(arg) {
            let wide = f32::from_bits(bits as u32);
            let (half, back) = if narrow == Scalar::F16 {
                let half = half::f16::from_f32(wide);
                (half.to_bits(), half.to_f32())
            } else {
                let half = half::bf16::from_f32(wide);
                (half.to_bits(), half.to_f32())
            };
            if back.to_bits() != wide.to_bits() {
                return Ok(None);
            }
            return self.constant(u64::from(half), narrow).map(Some);
        }
        Ok(self.widened(arg, narrow))
    }
}
