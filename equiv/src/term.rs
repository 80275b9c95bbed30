//! Terms: what a value is, as 128 bits of structural hash.
//!
//! # Idea
//! A value that is not a number is named by a hash of how it was computed: its operation and its
//! operands' names. Two values of one name are equal on every input, unless the hash collided; the
//! [`Graph`](crate::graph::Graph), where there is one, keeps what each name stands for and finds
//! that out.
//! # Invariants
//! - **T1** A name depends on operations, roundings, types and leaves alone: not on registers,
//!   threads, or the order in which the walk met things.
//! - **T2** Operands of a commutative operation are sorted; operands of one that associates as well
//!   (integers, min and max) form a multiset, whose name is a sum of its members' names.
//! # Held by
//! T1: nothing else is hashed. T2: [`Algebra::apply`], the only maker of operations.
//! # Not here
//! Numbers and addresses (`linear.rs`), and which instruction is which operation (`label.rs`).

use crate::{
    graph::{Graph, Node},
    label::{Kind, Label},
};

/// The name of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Body(pub [u64; 2]);

impl Body {
    pub fn digest(self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }

    /// The name of a set that holds this and what `self` names.
    #[inline]
    pub fn plus(self, other: Self) -> Self {
        Self([self.0[0].wrapping_add(other.0[0]), self.0[1].wrapping_add(other.0[1])])
    }
}

const K: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0xd6e8_feb8_6659_fd93];

#[inline]
fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    product as u64 ^ (product >> 64) as u64
}

/// Hashes words into a [`Body`].
#[derive(Clone, Copy)]
pub struct Mixer([u64; 2]);

impl Mixer {
    #[inline]
    pub fn new(seed: u64) -> Self {
        Self([fold(seed ^ K[0], K[1]), fold(seed ^ K[2], K[3])])
    }

    #[inline]
    pub fn word(self, word: u64) -> Self {
        self.body(Body([word, !word]))
    }

    #[inline]
    pub fn body(self, Body([x, y]): Body) -> Self {
        let [a, b] = self.0;
        Self([
            fold(a ^ x ^ K[0], b.rotate_left(23) ^ y ^ K[1]),
            fold(b ^ y.rotate_left(32) ^ K[2], a.rotate_left(41) ^ x.rotate_left(17) ^ K[3]),
        ])
    }

    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let mut mixer = self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mixer = mixer.word(u64::from_le_bytes(word));
        }
        mixer
    }

    #[inline]
    pub fn finish(self) -> Body {
        let [a, b] = self.0;
        Body([fold(a ^ K[3], b ^ K[1]) ^ b, fold(b ^ K[0], a ^ K[2]) ^ a])
    }
}

/// What a name stands at the top of: kept apart so that no two kinds are confused.
pub mod seed {
    pub const CONSTANT: u64 = 1;
    pub const SYMBOL: u64 = 2;
    pub const LINEAR: u64 = 3;
    pub const LOAD: u64 = 4;
    pub const SLICE: u64 = 5;
    pub const PACK: u64 = 6;
    pub const APPLY: u64 = 7;
    pub const MEMBER: u64 = 8;
    pub const MONOMIAL: u64 = 9;
    pub const SELECT: u64 = 10;
    pub const FLIPPED: u64 = 11;
    pub const OUTPUT: u64 = 12;
    pub const LABEL: u64 = 13;
    pub const MATRIX: u64 = 14;
    pub const LOOP: u64 = 15;
    pub const TEXT: u64 = 16;
}

/// How an [`Atom`]'s body is to be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum View {
    /// The whole value.
    #[default]
    Whole,
    /// Memory, read at the body's address plus the offset; not yet a value of a width.
    Load,
    /// Bytes of a wider value: from the low half of the offset, of as many as the high half says.
    Slice,
}

/// A value of one thread: a name, or a part of what one names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Atom {
    pub body: Body,
    pub offset: i32,
    /// The multiset operation that the body is a sum of; 0: none.
    pub space: u16,
    pub view: View,
    pub mark: Mark,
}

/// What is known of an atom besides its name: a set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mark(u8);

impl Mark {
    /// The complement of the predicate, or the negative of the float, that the body names.
    pub const FLIPPED: Self = Self(1);
    /// A product whose rounding is not written.
    pub const PRODUCT: Self = Self(2);

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn toggled(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Atom {
    pub fn whole(body: Body) -> Self {
        Self { body, ..Self::default() }
    }

    /// Never written: equal to nothing, itself included, once it reaches an output.
    pub const UNDEFINED: Self = Self {
        body: Body([0x756e_6465_6669_6e65, 0]),
        offset: 0,
        space: 0,
        view: View::Whole,
        mark: Mark(0),
    };

    pub fn is_undefined(self) -> bool {
        self.body == Self::UNDEFINED.body
    }

    /// The bytes from `start` of a whole value of `total` bytes.
    pub fn slice(self, total: u8, start: u8) -> Self {
        let offset = i32::from(total) << 16 | i32::from(start);
        Self { view: View::Slice, offset, ..self }
    }

    /// Whether it begins a value of `bytes` bytes.
    pub fn is_slice_of(self, bytes: u8) -> bool {
        self.view == View::Slice && self.offset == i32::from(bytes) << 16
    }

    /// The complement of a predicate, the negative of a float.
    pub fn flipped(self) -> Self {
        Self { mark: self.mark.toggled(Mark::FLIPPED), ..self }
    }
}

/// Makes names.
#[derive(Debug, Default)]
pub struct Algebra {
    /// What names stand for, where that was asked for.
    pub graph: Option<Graph>,
}

impl Algebra {
    #[inline]
    fn note(&mut self, body: Body, node: impl FnOnce() -> Node) -> Body {
        if let Some(graph) = &mut self.graph {
            graph.record(body, node());
        }
        body
    }

    pub fn constant(&mut self, bits: u64, bytes: u8) -> Atom {
        let body = Mixer::new(seed::CONSTANT).word(bits).word(u64::from(bytes)).finish();
        Atom::whole(self.note(body, || Node::Constant { bits, bytes }))
    }

    /// Truth, as a predicate's atom.
    pub fn truth(&mut self, holds: bool) -> Atom {
        self.constant(u64::from(holds), 0)
    }

    /// The name of an atom that is a value of `bytes` bytes.
    #[inline]
    pub fn whole(&mut self, atom: Atom, bytes: u8) -> Body {
        let plain = match atom.view {
            View::Whole => atom.body,
            View::Load => self.part(seed::LOAD, atom, bytes, Node::Load),
            View::Slice => self.part(seed::SLICE, atom, bytes, Node::Slice),
        };
        if !atom.mark.has(Mark::FLIPPED) || atom.is_undefined() {
            return plain;
        }
        let body = Mixer::new(seed::FLIPPED).body(plain).finish();
        self.note(body, || Node::Flipped(plain))
    }

    #[inline]
    fn part(&mut self, seed: u64, atom: Atom, bytes: u8, node: fn(Body, i32, u8) -> Node) -> Body {
        if atom.is_undefined() {
            return atom.body;
        }
        let place = (atom.offset as u32 as u64) << 8 | u64::from(bytes);
        let body = Mixer::new(seed).body(atom.body).word(place).finish();
        self.note(body, || node(atom.body, atom.offset, bytes))
    }

    /// The operation on operands that are whole values; undefined where one is.
    #[inline]
    pub fn apply(&mut self, label: &Label, args: &[Body]) -> Atom {
        if args.contains(&Atom::UNDEFINED.body) {
            return Atom::UNDEFINED;
        }
        let mut mixer = Mixer::new(seed::APPLY).body(label.body);
        match args {
            [a, b, rest @ ..] if label.commutes => {
                let (low, high) = if a <= b { (a, b) } else { (b, a) };
                mixer = mixer.body(*low).body(*high);
                mixer = rest.iter().fold(mixer, |mixer, arg| mixer.body(*arg));
            }
            _ => mixer = args.iter().fold(mixer, |mixer, arg| mixer.body(*arg)),
        }
        let body = mixer.finish();
        Atom::whole(self.note(body, || Node::apply(label.id, args, label.commutes)))
    }

    /// An operation that associates and commutes: the multiset of both sides' members.
    #[inline]
    pub fn join(&mut self, label: &Label, a: Atom, b: Atom, bytes: u8) -> Atom {
        if a.is_undefined() || b.is_undefined() {
            return Atom::UNDEFINED;
        }
        if label.kind == Kind::Idempotent && a == b && a.space == label.space {
            return a;
        }
        if let Some(identity) = label.identity {
            let identity = self.constant(identity, bytes);
            if a == identity || b == identity {
                return if a == identity { b } else { a };
            }
        }
        let (x, y) = (self.member(label, a, bytes), self.member(label, b, bytes));
        if label.kind == Kind::Idempotent && x == y {
            return Atom { space: label.space, ..Atom::whole(x) };
        }
        let body = x.plus(y);
        self.note(body, || Node::Join { label: label.id, parts: [x, y] });
        Atom { space: label.space, ..Atom::whole(body) }
    }

    fn member(&mut self, label: &Label, atom: Atom, bytes: u8) -> Body {
        if atom.space == label.space && atom.view == View::Whole && !atom.mark.has(Mark::FLIPPED) {
            return atom.body;
        }
        let inner = self.whole(atom, bytes);
        let body = Mixer::new(seed::MEMBER).body(label.body).body(inner).finish();
        self.note(body, || Node::Member { label: label.id, of: inner })
    }

    /// `a` where the predicate holds, else `b`.
    #[inline]
    pub fn select(&mut self, p: Atom, a: Body, b: Body) -> Atom {
        if a == b {
            return Atom::whole(a);
        }
        // A choice does not define what nobody wrote.
        if [a, b].contains(&Atom::UNDEFINED.body) {
            return Atom::UNDEFINED;
        }
        let (a, b) = if p.mark.has(Mark::FLIPPED) { (b, a) } else { (a, b) };
        let body = Mixer::new(seed::SELECT).body(p.body).body(a).body(b).finish();
        Atom::whole(self.note(body, || Node::Select { predicate: p.body, arms: [a, b] }))
    }

    /// Values side by side, lowest first.
    pub fn pack(&mut self, parts: &[Body], bytes: u8) -> Atom {
        if parts.contains(&Atom::UNDEFINED.body) {
            return Atom::UNDEFINED;
        }
        let mixer = Mixer::new(seed::PACK).word(u64::from(bytes));
        let body = parts.iter().fold(mixer, |mixer, part| mixer.body(*part)).finish();
        Atom::whole(self.note(body, || Node::Pack { parts: parts.into(), bytes }))
    }

    /// A number of which only its name is known.
    pub fn symbol(&mut self, name: &str) -> Body {
        let body = Mixer::new(seed::SYMBOL).bytes(name.as_bytes()).finish();
        self.note(body, || Node::Symbol(name.into()))
    }

    /// Notes a name that was hashed elsewhere.
    pub fn named(&mut self, body: Body, node: impl FnOnce() -> Node) -> Body {
        self.note(body, node)
    }
}
