//! What an operand may be: for each opcode, its operand positions with their types.
//!
//! # Idea
//! Widths are said once. The parser reads here how wide an immediate is and whether `!%p` may stand
//! at a position; the decoder reads whether a position is written or read; both learn from
//! [`Signature::roles`] whether the registers given fit.
//! # Invariants
//! - **S1** Positions come in the order of the text, and a position that is optional is left out
//!   only when the operand there does not fit it.
//! - **S2** A register is as wide as its position's type, except in `ld`, `st` and `cvt`, where it
//!   may be wider ([`Width::AtLeast`]).
//! # Held by
//! S1, S2: [`Signature::roles`]; `ptx/tests/alu/signature.rs` feeds it texts that break each.
//! # Not here
//! Whether an opcode takes a type at all: the executor refuses what it does not run.

use smallvec::{SmallVec, smallvec};

use super::{
    module::{Operand, Register},
    op::{Atomic, Barrier, Half, IntBinary, IntUnary, Mbarrier, Op, Vote},
    types::{Round, Scalar},
};

type Places = SmallVec<[Place; 6]>;

/// The operand positions of an opcode.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Signature {
    pub places: Places,
    /// More operands may follow, of which nothing is known.
    pub open: bool,
}

/// One operand position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub role: Role,
    /// May be left out.
    pub optional: bool,
}

/// What stands at a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Written. `_` may stand for any register of it.
    Write(Data),
    /// Written: `d`, or `d|p` with `p` a predicate.
    WritePair(Data),
    /// Read: a register, an immediate, a special register, a symbol's address.
    Read(Data),
    /// Read: a predicate, which may be negated.
    Predicate,
    /// A literal and nothing else.
    Immediate(Scalar),
    /// `[base+offset]`; the base is 32 or 64 bits wide, whatever the state space.
    Address,
    Label,
    /// The name of a `.branchtargets` list.
    Table,
    /// `(a, b)` before the function's name in a call.
    Returns,
    /// The function's name in a call, or a register.
    Callee,
    /// `(a, b)` after the function's name in a call.
    Arguments,
}

/// A value that is read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// Of one element.
    pub ty: Scalar,
    pub shape: Shape,
    pub width: Width,
}

/// How many registers make a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    One,
    /// `{a, b, …}`: that many, each of the type. One alone may drop its braces.
    Vector(u8),
    /// One of the type, or `{a, b, …}` of equal parts that make up its width together (`mov`).
    Pieces,
}

/// How wide a register may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    Exact,
    AtLeast,
}

/// Operands that do not fit a signature.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// Positions count from 1.
    #[error("operand {place} does not fit: {expected} is expected there")]
    Operand { place: usize, expected: String },
    #[error("{missing} is missing after operand {given}")]
    Missing { given: usize, missing: String },
    #[error("{given} operands where at most {most} are expected")]
    Surplus { given: usize, most: usize },
}

impl Data {
    /// The type of one of `parts` equal pieces; `None` where the width does not divide so.
    pub fn piece(self, parts: usize) -> Option<Scalar> {
        match (self.shape, parts) {
            (Shape::Pieces, 1) | (Shape::One, 1) => Some(self.ty),
            (Shape::Vector(length), _) if usize::from(length) == parts => Some(self.ty),
            (Shape::Pieces, 2 | 4 | 8) => untyped(self.ty.bits() / parts as u32),
            (Shape::Pieces | Shape::One | Shape::Vector(_), _) => None,
        }
    }

    fn takes(self, ty: Scalar, bits: u32) -> bool {
        let same_kind = (ty == Scalar::Pred) == (bits == 1);
        same_kind
            && match self.width {
                Width::Exact => bits == ty.bits(),
                Width::AtLeast => bits >= ty.bits(),
            }
    }
}

impl Role {
    /// Whether an operand may stand here.
    fn fits(self, operand: &Operand, registers: &[Register]) -> bool {
        match self {
            Role::Write(data) => fits_data(data, operand, registers, Access::Written),
            Role::WritePair(data) => {
                let (first, second) = if let Operand::Pair(first, second) = operand {
                    (first.as_ref(), Some(second.as_ref()))
                } else {
                    (operand, None)
                };
                fits_data(data, first, registers, Access::Written)
                    && second.is_none_or(|flag| {
                        fits_data(one(Scalar::Pred), flag, registers, Access::Written)
                    })
            }
            Role::Read(data) => fits_data(data, operand, registers, Access::Read),
            Role::Predicate => {
                let flag =
                    if let Operand::Not(id) = *operand { &Operand::Register(id) } else { operand };
                fits_data(one(Scalar::Pred), flag, registers, Access::Read)
            }
            Role::Immediate(_) => {
                matches!(operand, Operand::Int(_) | Operand::Float32(_) | Operand::Float64(_))
            }
            Role::Address => matches!(operand, Operand::Address { .. }),
            Role::Label => matches!(operand, Operand::Label(_)),
            Role::Table => matches!(operand, Operand::Table(_)),
            Role::Returns | Role::Arguments => matches!(operand, Operand::List(_)),
            Role::Callee => matches!(operand, Operand::Symbol { .. } | Operand::Register(_)),
        }
    }

    fn describe(self) -> String {
        match self {
            Role::Write(data) => format!("a destination, {}", data.describe()),
            Role::WritePair(data) => format!("a destination, {}, or d|p", data.describe()),
            Role::Read(data) => data.describe(),
            Role::Predicate => "a predicate".into(),
            Role::Immediate(ty) => format!("a literal .{ty}"),
            Role::Address => "an address in brackets".into(),
            Role::Label => "a label".into(),
            Role::Table => "a list of branch targets".into(),
            Role::Returns => "a list of return values".into(),
            Role::Callee => "a function".into(),
            Role::Arguments => "a list of arguments".into(),
        }
    }
}

impl Data {
    fn describe(self) -> String {
        let ty = self.ty;
        let width = match self.width {
            Width::Exact => "",
            Width::AtLeast => " or wider",
        };
        match self.shape {
            Shape::One => format!(".{ty}{width}"),
            Shape::Vector(length) => format!("{length} of .{ty}{width}"),
            Shape::Pieces => format!(".{ty} or its pieces"),
        }
    }
}

impl Signature {
    /// Finds each operand's position and checks that it fits; `None` for operands past the known
    /// positions of an open signature.
    pub fn roles(
        &self,
        operands: &[Operand],
        registers: &[Register],
    ) -> Result<Vec<Option<Role>>, Mismatch> {
        let mut places = self.places.iter();
        let mut roles = Vec::with_capacity(operands.len());
        for (index, operand) in operands.iter().enumerate() {
            let role = loop {
                match places.next() {
                    Some(place) if place.role.fits(operand, registers) => break Some(place.role),
                    Some(place) if place.optional => {}
                    Some(place) => {
                        let expected = place.role.describe();
                        return Err(Mismatch::Operand { place: index + 1, expected });
                    }
                    None if self.open => break None,
                    None => {
                        let (given, most) = (operands.len(), self.places.len());
                        return Err(surplus_or_misfit(index, given, most));
                    }
                }
            };
            roles.push(role);
        }
        match places.find(|place| !place.optional) {
            Some(place) => {
                Err(Mismatch::Missing { given: operands.len(), missing: place.role.describe() })
            }
            None => Ok(roles),
        }
    }
}

/// An operand that no place took: one too many, or one that optional places refused.
fn surplus_or_misfit(index: usize, given: usize, most: usize) -> Mismatch {
    if given > most {
        Mismatch::Surplus { given, most }
    } else {
        Mismatch::Operand { place: index + 1, expected: "one of the optional operands".into() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Written,
}

fn fits_data(data: Data, operand: &Operand, registers: &[Register], access: Access) -> bool {
    let (parts, braces) = if let Operand::Vector(parts) = operand {
        (parts.as_slice(), true)
    } else {
        (std::slice::from_ref(operand), false)
    };
    let Some(ty) = data.piece(parts.len()) else { return false };
    let fits = |part| fits_one(data, ty, part, registers, access);
    !(braces && data.shape == Shape::One) && parts.iter().all(fits)
}

fn fits_one(
    data: Data,
    ty: Scalar,
    operand: &Operand,
    registers: &[Register],
    access: Access,
) -> bool {
    match operand {
        Operand::Register(id) => {
            registers.get(id.index()).is_some_and(|register| data.takes(ty, register.ty.bits()))
        }
        Operand::Sink => access == Access::Written,
        Operand::Special(_)
        | Operand::Int(_)
        | Operand::Float32(_)
        | Operand::Float64(_)
        | Operand::Symbol { .. } => access == Access::Read,
        Operand::Not(_)
        | Operand::Address { .. }
        | Operand::Vector(_)
        | Operand::Pair(..)
        | Operand::Label(_)
        | Operand::Table(_)
        | Operand::List(_)
        | Operand::Bracket(_) => false,
    }
}

/// The operand positions of an opcode. [`Op::Opaque`] has none that are known.
///
/// One table, longer than a function should be, so that it can be read beside the PTX manual.
pub fn signature(op: &Op) -> Signature {
    use Scalar::*;
    let places: Places = match *op {
        Op::Mov { ty } => {
            let data = Data { ty, shape: Shape::Pieces, width: Width::Exact };
            smallvec![place(Role::Write(data)), place(Role::Read(data))]
        }
        Op::Cvta { ty, .. } => uniform(ty, 1),
        Op::Isspacep { .. } => smallvec![dst(Pred), src(U64)],
        Op::Mapa { ty, .. } => smallvec![dst(ty), src(ty), src(U32)],
        Op::Getctarank { ty, .. } => smallvec![dst(U32), src(ty)],
        Op::Selp { ty } => smallvec![dst(ty), src(ty), src(ty), src(Pred)],
        Op::Slct { ty, by, .. } => smallvec![dst(ty), src(ty), src(ty), src(by)],
        Op::Prmt { .. } => uniform(B32, 3),
        Op::Cvt { to, from, round, .. } => conversion(to, from, round),
        Op::CvtPack { from, third, .. } => {
            with(smallvec![dst(B32), src(from), src(from)], third.then(|| src(B32)))
        }

        Op::IntUnary { op: IntUnary::Popc | IntUnary::Clz, ty } => smallvec![dst(U32), src(ty)],
        Op::IntUnary { ty, .. } => uniform(ty, 1),
        Op::IntBinary { op: IntBinary::Shl | IntBinary::Shr, ty, .. } => {
            smallvec![dst(ty), src(ty), src(U32)]
        }
        Op::IntBinary { op: IntBinary::Mul(Half::Wide), ty, .. } => {
            smallvec![dst(widened(ty)), src(ty), src(ty)]
        }
        Op::IntBinary { ty, .. } => uniform(ty, 2),
        Op::Mad { half: Half::Wide, ty, .. } => {
            smallvec![dst(widened(ty)), src(ty), src(ty), src(widened(ty))]
        }
        Op::Mad { ty, .. } | Op::Mad24 { ty, .. } | Op::MadCarry { ty, .. } => uniform(ty, 3),
        Op::AddCarry { ty, .. } | Op::SubCarry { ty, .. } => uniform(ty, 2),
        Op::Sad { ty } => uniform(ty, 3),
        Op::Bfe { ty } => smallvec![dst(ty), src(ty), src(U32), src(U32)],
        Op::Bfi { ty } => smallvec![dst(ty), src(ty), src(ty), src(U32), src(U32)],
        Op::Bfind { ty, .. } => smallvec![dst(U32), src(ty)],
        Op::Bmsk { .. } => smallvec![dst(B32), src(U32), src(U32)],
        Op::Szext { ty, .. } => smallvec![dst(ty), src(ty), src(U32)],
        Op::Fns => smallvec![dst(B32), src(B32), src(U32), src(S32)],
        Op::Lop3 => with(uniform(B32, 3), [place(Role::Immediate(U32))]),
        Op::Shf { .. } => smallvec![dst(B32), src(B32), src(B32), src(U32)],
        Op::Dp4a { a, b } | Op::Dp2a { a, b, .. } => {
            let sum = if a == U32 && b == U32 { U32 } else { S32 };
            smallvec![dst(sum), src(B32), src(B32), src(sum)]
        }

        Op::Setp { ty, join, .. } => {
            with(smallvec![dst_pair(Pred), src(ty), src(ty)], join.map(|_| PREDICATE))
        }
        Op::Set { to, ty, join, .. } => {
            with(smallvec![dst(to), src(ty), src(ty)], join.map(|_| PREDICATE))
        }
        Op::Testp { ty, .. } => smallvec![dst(Pred), src(ty)],

        Op::FloatUnary { ty, .. } => uniform(ty, 1),
        Op::FloatBinary { ty, .. } => uniform(ty, 2),
        Op::FloatTernary { ty, .. } | Op::Fma { ty, .. } => uniform(ty, 3),
        Op::FmaMixed { fused: true, from, .. } => {
            smallvec![dst(F32), src(from), src(from), src(F32)]
        }
        Op::FmaMixed { fused: false, from, .. } => smallvec![dst(F32), src(from), src(F32)],

        Op::Ld { ty, vector, ref hints, .. } => {
            with(smallvec![place(Role::Write(transfer(ty, vector))), ADDRESS], policy(hints))
        }
        Op::St { ty, vector, ref hints, .. } => {
            with(smallvec![ADDRESS, place(Role::Read(transfer(ty, vector)))], policy(hints))
        }
        Op::Atom { op, result, ty, vector, ref hints, .. } => {
            atom(op, result, elements(ty, vector), hints)
        }
        Op::CpAsync { ref hints, .. } => {
            let size = place(Role::Immediate(U32));
            let ignore = optional(PREDICATE);
            with(smallvec![ADDRESS, ADDRESS, size, optional(src(U32)), ignore], policy(hints))
        }
        Op::CpAsyncCommit | Op::CpAsyncWait { all: true } => smallvec![],
        Op::CpAsyncWait { all: false } => smallvec![place(Role::Immediate(U32))],
        Op::CpAsyncMbarrierArrive { .. } => smallvec![ADDRESS],
        Op::Ldmatrix { number, ref shape, .. } => {
            smallvec![place(Role::Write(tiles(number, shape))), ADDRESS]
        }
        Op::Stmatrix { number, ref shape, .. } => {
            smallvec![ADDRESS, place(Role::Read(tiles(number, shape)))]
        }
        Op::Movmatrix => uniform(B32, 1),
        Op::Mma { m, n, k, d, a, b, c, .. } => {
            let (m, n, k) = (u64::from(m), u64::from(n), u64::from(k));
            // m8n8k4 on f16 is four products, one for each eight lanes.
            let quads = if (m, n, k, a) == (8, 8, 4, F16) { 4 } else { 1 };
            smallvec![
                place(Role::Write(fragment(d, quads * m * n))),
                place(Role::Read(fragment(a, quads * m * k))),
                place(Role::Read(fragment(b, quads * k * n))),
                place(Role::Read(fragment(c, quads * m * n))),
            ]
        }
        Op::Createpolicy { .. } => smallvec![dst(B64)],

        Op::Shfl { .. } => smallvec![dst_pair(B32), src(B32), src(U32), src(U32), src(B32)],
        Op::Vote { mode: Vote::Ballot } => smallvec![dst(B32), PREDICATE, src(B32)],
        Op::Vote { mode: Vote::All | Vote::Any | Vote::Uni } => {
            smallvec![dst(Pred), PREDICATE, src(B32)]
        }
        Op::Match { all: true, ty } => smallvec![dst_pair(B32), src(ty), src(B32)],
        Op::Match { all: false, ty } => smallvec![dst(B32), src(ty), src(B32)],
        Op::Redux { ty, .. } => smallvec![dst(ty), src(ty), src(B32)],
        Op::Activemask => smallvec![dst(B32)],
        Op::Elect => smallvec![dst_pair(B32), src(B32)],
        Op::BarWarp => smallvec![src(B32)],

        Op::Bar { kind, .. } => bar(kind),
        Op::Fence { .. } | Op::BarCluster { .. } => smallvec![],
        Op::Mbarrier { op, .. } => mbarrier(op),

        Op::Bra { .. } => smallvec![place(Role::Label)],
        Op::BrxIdx { .. } => smallvec![src(U32), place(Role::Table)],
        Op::Call { .. } => smallvec![
            optional(place(Role::Returns)),
            place(Role::Callee),
            optional(place(Role::Arguments)),
        ],
        Op::Nanosleep => smallvec![src(U32)],
        Op::Ret { .. }
        | Op::Exit
        | Op::Trap
        | Op::Brkpt
        | Op::Hint { .. }
        | Op::Nop { .. }
        | Op::Opaque { .. } => smallvec![],
    };
    Signature { places, open: is_open(op) }
}

/// Whether operands may follow that nothing here describes.
fn is_open(op: &Op) -> bool {
    matches!(
        op,
        Op::Fence { proxy: Some(_), .. }
            | Op::Createpolicy { .. }
            | Op::Call { .. }
            | Op::Hint { .. }
            | Op::Nop { .. }
            | Op::Opaque { .. }
    )
}

/// A packed result takes a source an element, or one source packed alike; four are a vector.
fn conversion(to: Scalar, from: Scalar, round: Option<Round>) -> Places {
    let source = place(Role::Read(wider(one(from))));
    let mut places: Places = smallvec![place(Role::Write(wider(one(to))))];
    match to.lanes() / from.lanes() {
        2 => places.extend([source, source]),
        4 => places.push(place(Role::Read(wider(elements(from, 4))))),
        _ => places.push(source),
    }
    with(places, (round == Some(Round::Rs)).then(|| src(Scalar::B32)))
}

fn atom(op: Atomic, result: bool, data: Data, hints: &[String]) -> Places {
    let mut places: Places = smallvec![];
    places.extend(result.then_some(place(Role::Write(data))));
    places.extend([ADDRESS, place(Role::Read(data))]);
    places.extend((op == Atomic::Cas).then_some(place(Role::Read(data))));
    with(places, policy(hints))
}

fn bar(kind: Barrier) -> Places {
    let id = src(Scalar::U32);
    let threads = optional(src(Scalar::U32));
    match kind {
        Barrier::Sync => smallvec![id, threads],
        Barrier::Arrive => smallvec![id, src(Scalar::U32)],
        Barrier::RedPopc => smallvec![dst(Scalar::U32), id, threads, PREDICATE],
        Barrier::Red(_) => smallvec![dst(Scalar::Pred), id, threads, PREDICATE],
    }
}

fn mbarrier(op: Mbarrier) -> Places {
    let (state, number) = (src(Scalar::B64), src(Scalar::U32));
    match op {
        Mbarrier::Init | Mbarrier::ExpectTx | Mbarrier::CompleteTx => smallvec![ADDRESS, number],
        Mbarrier::Inval => smallvec![ADDRESS],
        Mbarrier::Arrive { .. } => smallvec![dst(Scalar::B64), ADDRESS, optional(number)],
        Mbarrier::Wait { parity: true, .. } => {
            smallvec![dst(Scalar::Pred), ADDRESS, number, optional(number)]
        }
        Mbarrier::Wait { parity: false, .. } => {
            smallvec![dst(Scalar::Pred), ADDRESS, state, optional(number)]
        }
        Mbarrier::PendingCount => smallvec![dst(Scalar::U32), state],
    }
}

/// What a lane holds of a matrix of `count` elements: `f64`, `f32` and `s32` one a register,
/// narrower ones packed to 32 bits.
fn fragment(ty: Scalar, count: u64) -> Data {
    let (holder, bits) = match ty.bits() {
        64 => (ty, 64),
        32 => (ty, 32),
        narrower => (Scalar::B32, narrower),
    };
    vector(holder, count * u64::from(bits) / (WARP * u64::from(holder.bits())))
}
const WARP: u64 = 32;

/// The registers of `ldmatrix` and `stmatrix`: one a matrix, two where it has 16 rows of 16 bytes.
fn tiles(number: u8, shape: &str) -> Data {
    let each = if shape == "m16n16" { 2 } else { 1 };
    vector(Scalar::B32, u64::from(number) * each)
}

/// A cache policy may come last where the text has the `L2::cache_hint` modifier.
fn policy(hints: &[String]) -> Option<Place> {
    hints.iter().any(|hint| hint == "L2::cache_hint").then(|| optional(src(Scalar::B64)))
}

/// `d, a, b, …`, all of one type.
fn uniform(ty: Scalar, sources: usize) -> Places {
    std::iter::once(dst(ty)).chain(std::iter::repeat_n(src(ty), sources)).collect()
}

fn with(mut places: Places, more: impl IntoIterator<Item = Place>) -> Places {
    places.extend(more);
    places
}

const PREDICATE: Place = place(Role::Predicate);
const ADDRESS: Place = place(Role::Address);

const fn place(role: Role) -> Place {
    Place { role, optional: false }
}
fn dst(ty: Scalar) -> Place {
    place(Role::Write(one(ty)))
}
fn dst_pair(ty: Scalar) -> Place {
    place(Role::WritePair(one(ty)))
}
fn src(ty: Scalar) -> Place {
    place(Role::Read(one(ty)))
}
fn optional(place: Place) -> Place {
    Place { optional: true, ..place }
}

fn one(ty: Scalar) -> Data {
    Data { ty, shape: Shape::One, width: Width::Exact }
}
fn vector(ty: Scalar, length: u64) -> Data {
    // Longer than any instruction's: cut short, and then nothing fits it.
    let length = u8::try_from(length).unwrap_or(u8::MAX);
    Data { ty, shape: Shape::Vector(length), width: Width::Exact }
}
fn elements(ty: Scalar, length: u8) -> Data {
    let shape = if length <= 1 { Shape::One } else { Shape::Vector(length) };
    Data { ty, shape, width: Width::Exact }
}
fn wider(data: Data) -> Data {
    Data { width: Width::AtLeast, ..data }
}
/// What `ld` and `st` move.
fn transfer(ty: Scalar, length: u8) -> Data {
    wider(elements(ty, length))
}

/// Untyped bits of a width; `None` where PTX has no such type.
pub fn untyped(bits: u32) -> Option<Scalar> {
    match bits {
        1 => Some(Scalar::Pred),
        8 => Some(Scalar::B8),
        16 => Some(Scalar::B16),
        32 => Some(Scalar::B32),
        64 => Some(Scalar::B64),
        128 => Some(Scalar::B128),
        _ => None,
    }
}

/// The type of a `.wide` product; the type itself where PTX has none.
pub fn widened(ty: Scalar) -> Scalar {
    use Scalar::*;
    let wide = [(U16, U32), (S16, S32), (U32, U64), (S32, S64)];
    wide.iter().find(|(narrow, _)| *narrow == ty).map_or(ty, |(_, wide)| *wide)
}
