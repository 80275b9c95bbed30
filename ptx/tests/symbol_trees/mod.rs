//! Builds trees by hand.

#![allow(dead_code, reason = "each test file uses a part")]

use bitstable_ptx::{
    ir::{Compare, FloatBinary, FloatMode, IntBinary, Logic, Op, Round, Scalar},
    report::{Site, Thread},
    symbol::{Graph, Label, Leaf, NodeId, print::Names},
};

/// Buffers are x, y, z.
pub fn named() -> Names<'static> {
    Names {
        buffer: &|number| ["x", "y", "z"].get(number as usize).copied().unwrap_or("b").into(),
        source: &|pc| Some(format!("sum.py:{pc}")),
    }
}

pub fn combines() -> [FloatBinary; 5] {
    use FloatBinary::*;
    [Add, Mul, Min, Max, Sub]
}

/// A conversion without modifiers.
pub fn cvt(to: Scalar, from: Scalar, round: Option<Round>) -> Op {
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

pub struct Trees {
    pub graph: Graph,
    /// Thread that computes what is built next.
    pub thread: u32,
    pub cta: u32,
}

impl Trees {
    pub fn new() -> Self {
        Self { graph: Graph::new(1 << 20), thread: 0, cta: 0 }
    }

    pub fn site(&self) -> Site {
        Site { pc: 7, thread: Thread { cta: self.cta, thread: self.thread } }
    }

    /// The first `count` elements of x.
    pub fn row(&mut self, count: u64) -> Vec<NodeId> {
        self.elements(0, count, 4)
    }

    /// `count` floats of a buffer, `step` bytes apart.
    pub fn elements(&mut self, buffer: u32, count: u64, step: u64) -> Vec<NodeId> {
        self.typed(buffer, count, step, Scalar::F32)
    }

    pub fn typed(&mut self, buffer: u32, count: u64, step: u64, ty: Scalar) -> Vec<NodeId> {
        let leaf = |k| Leaf { buffer, offset: k * step, ty };
        (0..count).map(|k| self.graph.leaf(leaf(k)).expect("room")).collect()
    }

    pub fn number(&mut self, bits: u32) -> NodeId {
        self.typed_number(u64::from(bits), Scalar::F32)
    }

    pub fn typed_number(&mut self, bits: u64, ty: Scalar) -> NodeId {
        self.graph.constant(bits, ty).expect("room")
    }

    pub fn index(&mut self, value: u64) -> NodeId {
        self.typed_number(value, Scalar::S32)
    }

    pub fn operation(&mut self, op: &Op, ty: Scalar, args: &[NodeId]) -> NodeId {
        let site = self.site();
        self.graph.operation(op, ty, args, site).expect("room")
    }

    pub fn join(&mut self, op: FloatBinary, a: NodeId, b: NodeId) -> NodeId {
        self.typed_join(op, a, b, Scalar::F32)
    }

    pub fn typed_join(&mut self, op: FloatBinary, a: NodeId, b: NodeId, ty: Scalar) -> NodeId {
        let rounds = !matches!(op, FloatBinary::Min | FloatBinary::Max);
        let mode = FloatMode { round: rounds.then_some(Round::Rn), ..FloatMode::default() };
        self.operation(&Op::FloatBinary { op, ty, mode }, ty, &[a, b])
    }

    pub fn fma(&mut self, a: NodeId, b: NodeId, c: NodeId) -> NodeId {
        self.typed_fma([a, b, c], Scalar::F32)
    }

    pub fn typed_fma(&mut self, args: [NodeId; 3], ty: Scalar) -> NodeId {
        let mode = FloatMode { round: Some(Round::Rn), ..FloatMode::default() };
        self.operation(&Op::Fma { ty, mode }, ty, &args)
    }

    pub fn convert(&mut self, node: NodeId, to: Scalar, from: Scalar) -> NodeId {
        let round = (to.bits() < from.bits()).then_some(Round::Rn);
        self.operation(&cvt(to, from, round), to, &[node])
    }

    /// Neighbours first.
    pub fn count_up(&mut self, op: FloatBinary, leaves: &[NodeId]) -> NodeId {
        let mut level = leaves.to_vec();
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| self.join(op, pair[0], pair[1])).collect();
        }
        level[0]
    }

    pub fn greater(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.compare(Compare::Gt, Scalar::F32, a, b)
    }

    fn compare(&mut self, cmp: Compare, ty: Scalar, a: NodeId, b: NodeId) -> NodeId {
        self.operation(&Op::Setp { cmp, ty, ftz: false, join: None }, Scalar::Pred, &[a, b])
    }

    fn logic(&mut self, op: Logic, a: NodeId, b: NodeId) -> NodeId {
        let op = match op {
            Logic::And => IntBinary::And,
            Logic::Or => IntBinary::Or,
            Logic::Xor => IntBinary::Xor,
        };
        let op = Op::IntBinary { op, ty: Scalar::Pred, sat: false };
        self.operation(&op, Scalar::Pred, &[a, b])
    }

    pub fn choose(&mut self, p: NodeId, a: NodeId, b: NodeId) -> NodeId {
        let (ty, site) = (self.graph.ty(a), self.site());
        let label = self.graph.intern(Label::select(ty));
        self.graph.apply(label, &[p, a, b], site).expect("room")
    }

    /// The larger value, on ties that of the lower index; and its index.
    pub fn argmax(&mut self, a: (NodeId, NodeId), b: (NodeId, NodeId)) -> (NodeId, NodeId) {
        let greater = self.greater(a.0, b.0);
        let equal = self.compare(Compare::Eq, Scalar::F32, a.0, b.0);
        let before = self.compare(Compare::Lt, Scalar::S32, a.1, b.1);
        let tie = self.logic(Logic::And, equal, before);
        let left = self.logic(Logic::Or, greater, tie);
        (self.choose(left, a.0, b.0), self.choose(left, a.1, b.1))
    }
}
