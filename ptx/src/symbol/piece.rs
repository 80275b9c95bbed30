//! Pieces: which byte of which node a byte holds.
//!
//! # Idea
//! A byte of a register or of memory is a number, or byte `part` of a node's value. Eight pieces
//! beside 64 concrete bits are a [`Value`]; an operation asks it for the one node it holds.
//! # Invariants
//! - **B1** Piece zero is "a number": no node has id 0.
//! - **B2** Bytes that form no whole node still give a node, which lists them ([`Part`]).

use smallvec::SmallVec;

use super::{
    Limit,
    graph::{Graph, Node, NodeId},
    label::{Label, Part, What},
};
use crate::{
    ir::{Class, Op, Scalar},
    report::Site,
};

/// A byte of a node, or a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Piece(u32);

/// Bytes in the widest value: `b64`; 128-bit values are two.
pub(crate) const WIDEST: usize = 8;

impl Piece {
    pub const NUMBER: Self = Self(0);

    pub fn of(node: NodeId, part: usize) -> Self {
        Self(node.0 << 4 | part as u32)
    }

    pub fn is_number(self) -> bool {
        self.0 == 0
    }

    pub fn node(self) -> Option<NodeId> {
        (self.0 != 0).then_some(NodeId(self.0 >> 4))
    }

    pub fn part(self) -> usize {
        (self.0 & 15) as usize
    }
}

/// Up to eight bytes: what they hold, and their bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Value {
    pub pieces: [Piece; WIDEST],
    pub bits: u64,
}

impl Value {
    pub fn number(bits: u64) -> Self {
        Self { pieces: [Piece::NUMBER; WIDEST], bits }
    }

    /// A node's bytes, zeros above. Its bits are the caller's business.
    pub fn whole(node: NodeId, bytes: usize) -> [Piece; WIDEST] {
        std::array::from_fn(|k| if k < bytes { Piece::of(node, k) } else { Piece::NUMBER })
    }

    pub fn is_number(&self, bytes: usize) -> bool {
        self.pieces[..bytes.min(WIDEST)].iter().all(|piece| piece.is_number())
    }

    pub fn byte(&self, at: usize) -> u8 {
        (self.bits >> (8 * at)) as u8
    }

    /// `bytes` bytes from `at`, moved down to byte 0.
    pub fn slice(&self, at: usize, bytes: usize) -> Self {
        let pieces = std::array::from_fn(|k| {
            if k < bytes && at + k < WIDEST { self.pieces[at + k] } else { Piece::NUMBER }
        });
        let bits = self.bits.checked_shr(8 * at as u32).unwrap_or(0) & mask(bytes);
        Self { pieces, bits }
    }

    /// The node whose bytes stand at `at..at + its width`, with its width.
    pub fn node_at(&self, graph: &Graph, at: usize) -> Option<(NodeId, usize)> {
        let first = *self.pieces.get(at)?;
        let node = first.node().filter(|_| first.part() == 0)?;
        let bytes = graph.ty(node).bytes() as usize;
        let pieces = self.pieces.get(at..at + bytes)?;
        let whole = (0..bytes).all(|k| pieces[k] == Piece::of(node, k));
        whole.then_some((node, bytes))
    }

    /// The node of a value of type `ty`; `None` when it is a number.
    pub fn node(&self, graph: &mut Graph, ty: Scalar, site: Site) -> Result<Option<NodeId>, Limit> {
        let bytes = (ty.bytes() as usize).min(WIDEST);
        if self.is_number(bytes) {
            return Ok(None);
        }
        if let Some((node, width)) = self.node_at(graph, 0) {
            let rest = self.slice(width, bytes.saturating_sub(width));
            let zero_above = rest == Self::number(0);
            if width == bytes || (width < bytes && zero_above && ty.class() != Class::Float) {
                return Ok(Some(node));
            }
        }
        if let Some(node) = self.upper_half(graph, ty, site)? {
            return Ok(Some(node));
        }
        self.bits_node(graph, ty, bytes, site).map(Some)
    }

    /// As [`Value::node`], numbers as constants.
    pub fn operand(&self, graph: &mut Graph, ty: Scalar, site: Site) -> Result<NodeId, Limit> {
        match self.node(graph, ty, site)? {
            Some(node) => Ok(node),
            None => graph.constant(self.bits, ty),
        }
    }

    /// `bf16` is the upper half of an `f32`: sixteen zeros below one widen it, exactly, and the
    /// upper half of a widened one is the one.
    fn upper_half(
        &self,
        graph: &mut Graph,
        ty: Scalar,
        site: Site,
    ) -> Result<Option<NodeId>, Limit> {
        if ty == Scalar::F32
            && self.slice(0, 2) == Self::number(0)
            && let Some((node, 2)) = self.node_at(graph, 2)
        {
            return graph.widen(node, Scalar::BF16, site).map(Some);
        }
        let Some(node) = self.pieces[0].node() else {
            return Ok(None);
        };
        let upper = self.pieces[..2] == [Piece::of(node, 2), Piece::of(node, 3)];
        if ty.bytes() == 2 && upper {
            return Ok(graph.widened(node, Scalar::BF16));
        }
        Ok(None)
    }

    fn bits_node(
        &self,
        graph: &mut Graph,
        ty: Scalar,
        bytes: usize,
        site: Site,
    ) -> Result<NodeId, Limit> {
        let mut args = SmallVec::<[NodeId; WIDEST]>::new();
        let mut parts = Vec::with_capacity(bytes);
        for at in 0..bytes {
            let piece = self.pieces[at];
            let Some(node) = piece.node() else {
                parts.push(Part::Number(self.byte(at)));
                continue;
            };
            let arg = args.iter().position(|known| *known == node).unwrap_or(args.len());
            if arg == args.len() {
                args.push(node);
            }
            parts.push(Part::Of { arg: arg as u8, byte: piece.part() as u8 });
        }
        let label = graph.intern(Label { what: What::Bits(parts.into()), result: ty });
        graph.apply(label, &args, site)
    }
}

impl Graph {
    /// What an exact conversion from `narrow` to `f32` was made of.
    pub(crate) fn widened(&self, node: NodeId, narrow: Scalar) -> Option<NodeId> {
        let Node::Apply { label, args } = self.node(node) else {
            return None;
        };
        let What::Operation(Op::Cvt { to: Scalar::F32, from, .. }) = &self.label(label).what else {
            return None;
        };
        (*from == narrow).then(|| args[0])
    }
}

/// The low `bytes` bytes.
pub(crate) fn mask(bytes: usize) -> u64 {
    match bytes {
        0 => 0,
        1..WIDEST => (1 << (8 * bytes)) - 1,
        _ => u64::MAX,
    }
}
