//! Operations on data, one term an element.
//!
//! # Invariants
//! - **A1** One spelling of a value: `fma(x, 1, y)` is the addition and `fma(x, y, -0)` the product,
//!   bit for bit. `x + -0` is not `x`, whose bits a NaN would show.
//! - **A2** Only one factor of a product has a sign, and a difference is a sum: exact where rounding
//!   does not know the sign. The negative of a product is another, as NaNs have one sign.
//! - **A3** A sum that ptxas may fuse with a product keeps a name of its own, and its place.

use bitstable_ptx::{
    ir::{FloatBinary, FloatMode, FloatUnary, Op, Round, Scalar},
    symbol::{
        label::{Format, format},
        plain_cvt,
    },
};
use smallvec::SmallVec;

use super::{Stop, Walk};
use crate::{
    each::Each,
    label::{Kind, Label, Rounding, unsigned},
    linear::Linear,
    term::{Atom, Body, Mark},
    value::Value,
};

impl<'m> Walk<'m> {
    /// An operation on elements of its type.
    pub(super) fn element(
        &mut self,
        op: &Op,
        ty: Scalar,
        sources: &[Value],
        bytes: u8,
    ) -> Result<Value, Stop> {
        let sizes: SmallVec<[u8; 4]> = sources.iter().map(|_| bytes).collect();
        self.typed(op, ty, sources, &sizes, bytes)
    }

    /// An operation on values of so many bytes each.
    pub(super) fn typed(
        &mut self,
        op: &Op,
        result: Scalar,
        sources: &[Value],
        sizes: &[u8],
        bytes: u8,
    ) -> Result<Value, Stop> {
        if let Some((simple, kept)) = degenerate_fma(op, sources) {
            let sources = [sources[kept[0]].clone(), sources[kept[1]].clone()];
            return self.typed(&simple, result, &sources, &[bytes, bytes], bytes);
        }
        if let Op::FloatTernary { op: FloatBinary::Min | FloatBinary::Max, ty, mode } = op
            && let Op::FloatTernary { op: which, .. } = op
            && let [a, b, c] = sources
        {
            let two = Op::FloatBinary { op: *which, ty: *ty, mode: *mode };
            let first = self.typed(&two, result, &[a.clone(), b.clone()], &[bytes; 2], bytes)?;
            return self.typed(&two, result, &[first, c.clone()], &[bytes; 2], bytes);
        }
        if let Op::FmaMixed { op: which, fused, from, mode } = op {
            return self.mixed((*which, *fused, *from, *mode), result, sources, bytes);
        }
        if let Some(value) = self.signed(op, result, sources, (sizes, bytes))? {
            return Ok(value);
        }
        self.labelled(op, "", result, (sources, sizes), bytes)
    }

    /// Arithmetic on `f32` with narrow operands, which are exact there.
    fn mixed(
        &mut self,
        (op, fused, from, mode): (FloatBinary, bool, Scalar, FloatMode),
        result: Scalar,
        sources: &[Value],
        bytes: u8,
    ) -> Result<Value, Stop> {
        let widen = plain_cvt(Scalar::F32, from, None);
        let narrow = (from.bits() / 8) as u8;
        let count = if fused { 2 } else { 1 };
        let mut wide: SmallVec<[Value; 4]> = SmallVec::new();
        for (at, source) in sources.iter().enumerate() {
            let source = source.clone();
            wide.push(if at < count {
                self.typed(&widen, Scalar::F32, &[source], &[narrow], bytes)?
            } else {
                source
            });
        }
        let ty = Scalar::F32;
        let op = if fused { Op::Fma { ty, mode } } else { Op::FloatBinary { op, ty, mode } };
        let sizes: SmallVec<[u8; 4]> = wide.iter().map(|_| bytes).collect();
        self.typed(&op, result, &wide, &sizes, bytes)
    }

    /// Products, differences and negatives, in one spelling of their signs.
    fn signed(
        &mut self,
        op: &Op,
        result: Scalar,
        sources: &[Value],
        (sizes, bytes): (&[u8], u8),
    ) -> Result<Option<Value>, Stop> {
        match (op, sources) {
            (Op::FloatUnary { op: FloatUnary::Neg, ty, mode }, [a])
                if *mode == FloatMode::default() && ty.lanes() == 1 =>
            {
                Ok(self.flipped(a, *ty))
            }
            (Op::FloatBinary { op: FloatBinary::Sub, ty, mode }, [a, b]) if symmetric(mode) => {
                let Some(b) = self.flipped(b, *ty) else { return Ok(None) };
                let sum = Op::FloatBinary { op: FloatBinary::Add, ty: *ty, mode: *mode };
                self.typed(&sum, result, &[a.clone(), b], sizes, bytes).map(Some)
            }
            (Op::FloatBinary { op: FloatBinary::Mul, ty, mode }, [a, b]) if symmetric(mode) => {
                let ((a, x), (b, y)) = (unsigned_part(a, *ty), unsigned_part(b, *ty));
                let name = if x == y { "" } else { "minus " };
                self.labelled(op, name, result, (&[a, b], sizes), bytes).map(Some)
            }
            (Op::Fma { ty, mode }, [a, b, c]) if symmetric(mode) => {
                let ((a, x), (b, y)) = (unsigned_part(a, *ty), unsigned_part(b, *ty));
                let name = if x == y { "" } else { "minus " };
                self.labelled(op, name, result, (&[a, b, c.clone()], sizes), bytes).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The negative of a float, where that has a name.
    fn flipped(&mut self, value: &Value, ty: Scalar) -> Option<Value> {
        match value {
            Value::Bits(bits) => {
                let Format { sign, .. } = format(ty)?;
                Some(Value::Bits(bits.map(|bits| bits ^ sign)))
            }
            Value::Atoms(atoms, bytes) => Some(Value::Atoms(
                atoms.map(|atom| if atom.is_undefined() { atom } else { atom.flipped() }),
                *bytes,
            )),
            Value::Parts(..) | Value::Linear(_) => {
                let bytes = (ty.bits() / 8) as u8;
                let atoms = value.atoms(&mut self.world.algebra, bytes, self.threads);
                Some(Value::Atoms(atoms.map(Atom::flipped), bytes))
            }
            Value::Undefined => None,
        }
    }

    /// An operation as it stands, under its label with something before it.
    fn labelled(
        &mut self,
        op: &Op,
        before: &str,
        result: Scalar,
        (sources, sizes): (&[Value], &[u8]),
        bytes: u8,
    ) -> Result<Value, Stop> {
        let op = unsigned(op);
        let id = self.world.labels.of(&op, result, self.module.target.sm);
        let label = self.world.labels.get(id).clone();
        if let ([a, b], Kind::Associative | Kind::Idempotent) = (sources, label.kind) {
            return Ok(self.joined(&op, &label, a, b, bytes));
        }
        let open = label.rounding == Rounding::OpenSum
            && sources.iter().any(|source| marked(source, Mark::PRODUCT));
        let product = label.rounding == Rounding::OpenProduct;
        let label = if self.pins.is_some() && label.rounding != Rounding::Written {
            self.renamed(crate::pins::OPEN, &label)
        } else if open {
            self.fusible(&label)
        } else if before.is_empty() {
            label
        } else {
            self.renamed(before, &label)
        };
        let atoms = self.applied(&label, sources, sizes);
        let atoms = if product {
            atoms.map(|atom| Atom { mark: atom.mark.with(Mark::PRODUCT), ..atom })
        } else {
            atoms
        };
        Ok(self.integer_or_atoms(&op, atoms, bytes))
    }

    /// The operation's name where ptxas may fuse it with a product it adds.
    fn fusible(&mut self, label: &Label) -> Label {
        let place = self.place();
        if !self.contractions.contains(&place) {
            self.contractions.push(place);
        }
        self.renamed("fusible ", label)
    }

    fn renamed(&mut self, before: &str, label: &Label) -> Label {
        let name = format!("{before}{}", self.world.labels.name(label.id));
        let id = self.world.labels.named(&name);
        Label { commutes: label.commutes, ..self.world.labels.get(id).clone() }
    }

    fn joined(&mut self, op: &Op, label: &Label, a: &Value, b: &Value, bytes: u8) -> Value {
        let threads = self.threads;
        let algebra = &mut self.world.algebra;
        let (a, b) = (a.atoms(algebra, bytes, threads), b.atoms(algebra, bytes, threads));
        let atoms = a.zip(&b, |a, b| algebra.join(label, a, b, bytes));
        self.integer_or_atoms(op, atoms, bytes)
    }

    /// One application a thread, or one for all.
    fn applied(&mut self, label: &Label, sources: &[Value], sizes: &[u8]) -> Each<Atom> {
        let threads = self.threads;
        let algebra = &mut self.world.algebra;
        let bodies: SmallVec<[Each<Body>; 4]> = sources
            .iter()
            .zip(sizes)
            .map(|(source, size)| source.bodies(algebra, *size, threads))
            .collect();
        match bodies.as_slice() {
            [a] => a.map(|a| algebra.apply(label, &[a])),
            [a, b] => a.zip(b, |a, b| algebra.apply(label, &[a, b])),
            all if all.iter().all(|each| each.uniform().is_some()) => {
                let args: SmallVec<[Body; 4]> = all.iter().map(|each| each.at(0)).collect();
                Each::All(algebra.apply(label, &args))
            }
            all => Each::from_fn(threads, |thread| {
                let args: SmallVec<[Body; 4]> = all.iter().map(|each| each.at(thread)).collect();
                algebra.apply(label, &args)
            }),
        }
    }

    /// An integer that all threads share is a symbol: addresses may be linear in it.
    fn integer_or_atoms(&self, op: &Op, atoms: Each<Atom>, bytes: u8) -> Value {
        if let (Each::All(atom), true) =
            (&atoms, bytes >= 4 && is_integer(op) && self.pins.is_none())
            && !atom.is_undefined()
        {
            return Value::Linear(std::rc::Rc::new(Linear::symbol(atom.body)));
        }
        Value::Atoms(atoms, bytes)
    }

    /// A term of a name of our own.
    pub(super) fn opaque(
        &mut self,
        name: &str,
        sources: &[Value],
        sizes: &[u8],
        bytes: u8,
    ) -> Value {
        let id = self.world.labels.named(name);
        let label = self.world.labels.get(id).clone();
        Value::Atoms(self.applied(&label, sources, sizes), bytes)
    }
}

fn is_integer(op: &Op) -> bool {
    if let Op::Cvt { to, .. } = op {
        use bitstable_ptx::ir::Class;
        return matches!(to.class(), Class::Signed | Class::Unsigned | Class::Bits);
    }
    matches!(
        op,
        Op::IntBinary { .. }
            | Op::IntUnary { .. }
            | Op::Mad { .. }
            | Op::Mad24 { .. }
            | Op::Bfe { .. }
            | Op::Bfi { .. }
            | Op::Lop3
            | Op::Shf { .. }
            | Op::Sad { .. }
            | Op::Bfind { .. }
            | Op::Prmt { .. }
    )
}

fn marked(value: &Value, mark: Mark) -> bool {
    match value {
        Value::Atoms(atoms, _) => !atoms.all(|atom| !atom.mark.has(mark)),
        Value::Undefined | Value::Bits(_) | Value::Linear(_) | Value::Parts(..) => false,
    }
}

/// A rounding that does not know the sign, and nothing done to the result.
fn symmetric(mode: &FloatMode) -> bool {
    let plain = FloatMode { round: mode.round, ftz: mode.ftz, ..FloatMode::default() };
    *mode == plain && matches!(mode.round, None | Some(Round::Rn | Round::Rz))
}

/// A float without its sign, where that is known to be minus for all threads or for none.
fn unsigned_part(value: &Value, ty: Scalar) -> (Value, bool) {
    match value {
        Value::Bits(bits) => {
            let Some(Format { sign, .. }) = format(ty) else { return (value.clone(), false) };
            if bits.all(|bits| bits & sign != 0) {
                return (Value::Bits(bits.map(|bits| bits ^ sign)), true);
            }
            (value.clone(), false)
        }
        Value::Atoms(atoms, bytes) if atoms.all(|atom| atom.mark.has(Mark::FLIPPED)) => {
            (Value::Atoms(atoms.map(Atom::flipped), *bytes), true)
        }
        Value::Undefined | Value::Linear(_) | Value::Atoms(..) | Value::Parts(..) => {
            (value.clone(), false)
        }
    }
}

fn number(value: &Value) -> Option<u64> {
    if let Value::Bits(bits) = value { bits.uniform() } else { None }
}

/// The addition or product that an fma is, and which of its operands.
fn degenerate_fma(op: &Op, sources: &[Value]) -> Option<(Op, [usize; 2])> {
    let (Op::Fma { ty, mode }, [a, b, c]) = (op, sources) else { return None };
    let plain = FloatMode { round: Some(Round::Rn), ftz: mode.ftz, ..FloatMode::default() };
    let Format { one, sign: minus_zero, .. } = format(*ty)?;
    if *mode != plain {
        return None;
    }
    let simple = |op| Op::FloatBinary { op, ty: *ty, mode: *mode };
    if number(c) == Some(minus_zero) {
        Some((simple(FloatBinary::Mul), [0, 1]))
    } else if number(b) == Some(one) {
        Some((simple(FloatBinary::Add), [0, 2]))
    } else if number(a) == Some(one) {
        Some((simple(FloatBinary::Add), [1, 2]))
    } else {
        None
    }
}
