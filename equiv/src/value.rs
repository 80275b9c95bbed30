//! What a register holds, for all threads of a CTA.
//!
//! # Idea
//! Thread numbers are numbers, so most index arithmetic is numbers; what depends on the launch is
//! linear in symbols; data are atoms. Packed values stay apart in their parts, so that what is moved
//! as 32 bits is still two 16-bit values.
//! # Invariants
//! - **V1** Bits beyond the register's width are zero.
//! - **V2** Parts are of equal size, and none is made of parts.
//! # Held by
//! V1: the makers in `walk/`. V2: [`parts`].

use std::rc::Rc;

use crate::{
    each::Each,
    linear::Linear,
    term::{Algebra, Atom, Body, Mark, View},
};

#[derive(Clone, Debug)]
pub enum Value {
    /// Never written.
    Undefined,
    Bits(Each<u64>),
    Linear(Rc<Linear>),
    /// A value of so many bytes; 0 for a predicate.
    Atoms(Each<Atom>, u8),
    /// Lowest first, each of so many bytes.
    Parts(Rc<[Value]>, u8),
}

/// A value in parts, lowest first; one value again where the parts are one.
pub fn parts(values: Vec<Value>, bytes: u8) -> Value {
    if values.len() == 1 {
        return values[0].clone();
    }
    if let Some(bits) = joined_bits(&values, bytes) {
        return bits;
    }
    if let Some(atoms) = joined_atoms(&values, bytes) {
        return atoms;
    }
    let (values, bytes) = flat(values, bytes);
    Value::Parts(values.into(), bytes)
}

/// Parts of parts, all at the smallest size among them.
fn flat(values: Vec<Value>, bytes: u8) -> (Vec<Value>, u8) {
    let size = |value: &Value| if let Value::Parts(_, own) = value { *own } else { bytes };
    let smallest = values.iter().map(size).min().unwrap_or(bytes);
    if smallest == bytes && !values.iter().any(|value| matches!(value, Value::Parts(..))) {
        return (values, bytes);
    }
    let each = values.iter().flat_map(|value| value.split(bytes, smallest)).collect();
    (each, smallest)
}

fn joined_bits(values: &[Value], bytes: u8) -> Option<Value> {
    if values.len() * usize::from(bytes) > 8 {
        return None;
    }
    let mut total = Each::All(0u64);
    for (at, value) in values.iter().enumerate() {
        let Value::Bits(bits) = value else { return None };
        let shift = 8 * u32::from(bytes) * at as u32;
        total = total.zip(bits, |low, bits| low | bits << shift);
    }
    Some(Value::Bits(total))
}

/// Neighbours in memory, or in a wider value, are one again.
fn joined_atoms(values: &[Value], bytes: u8) -> Option<Value> {
    let Value::Atoms(first, _) = &values[0] else { return None };
    if !first.all(|atom| atom.view != View::Whole) {
        return None;
    }
    for (at, value) in values.iter().enumerate().skip(1) {
        let Value::Atoms(atoms, own) = value else { return None };
        if *own != bytes {
            return None;
        }
        let step = at as i32 * i32::from(bytes);
        let follows = first.zip(atoms, |a, b| {
            a.view == b.view && a.body == b.body && a.offset.checked_add(step) == Some(b.offset)
        });
        if !follows.all(|follows| follows) {
            return None;
        }
    }
    let total = bytes.checked_mul(values.len() as u8)?;
    Some(Value::Atoms(first.clone(), total).unsliced())
}

impl Value {
    /// A whole value, where the slice is all of one.
    fn unsliced(self) -> Self {
        let Value::Atoms(atoms, bytes) = &self else { return self };
        let whole = |atom: Atom| atom.is_slice_of(*bytes);
        if atoms.all(whole) {
            return Value::Atoms(atoms.map(|a| Atom { view: View::Whole, offset: 0, ..a }), *bytes);
        }
        self
    }

    /// Number `bytes`-sized pieces of a value of `total` bytes, lowest first.
    pub fn split(&self, total: u8, bytes: u8) -> Vec<Value> {
        if total <= bytes || bytes == 0 {
            return vec![self.clone()];
        }
        (0..total / bytes).map(|at| self.piece(total, at * bytes, bytes)).collect()
    }

    /// `bytes` bytes from `start` of a value of `total` bytes.
    pub fn piece(&self, total: u8, start: u8, bytes: u8) -> Value {
        if start == 0 && bytes >= total {
            return self.clone();
        }
        match self {
            Value::Undefined => Value::Undefined,
            Value::Bits(bits) => {
                let mask = if bytes >= 8 { u64::MAX } else { (1 << (8 * u32::from(bytes))) - 1 };
                let shift = 8 * u32::from(start);
                Value::Bits(bits.map(|bits| bits.checked_shr(shift).unwrap_or(0) & mask))
            }
            Value::Parts(values, size) => {
                if start.is_multiple_of(*size) && bytes.is_multiple_of(*size) {
                    let (first, count) = (usize::from(start / size), usize::from(bytes / size));
                    if let Some(run) = values.get(first..first + count) {
                        return parts(run.to_vec(), *size);
                    }
                }
                if bytes < *size && start / size == (start + bytes - 1) / size {
                    return match values.get(usize::from(start / size)) {
                        Some(value) => value.piece(*size, start % size, bytes),
                        None => Value::Undefined,
                    };
                }
                Value::Undefined
            }
            // The parts of a negative have no names.
            Value::Atoms(atoms, _) if !atoms.all(|atom| !atom.mark.has(Mark::FLIPPED)) => {
                Value::Undefined
            }
            Value::Atoms(atoms, _) => Value::Atoms(
                atoms.map(|atom| match atom.view {
                    View::Load | View::Slice => {
                        Atom { offset: atom.offset.wrapping_add(i32::from(start)), ..atom }
                    }
                    View::Whole => atom.slice(total, start),
                }),
                bytes,
            ),
            Value::Linear(_) => Value::Undefined,
        }
    }

    /// The names of a value of `bytes` bytes, each thread's.
    pub fn bodies(&self, algebra: &mut Algebra, bytes: u8, threads: usize) -> Each<Body> {
        match self {
            Value::Undefined => Each::All(Atom::UNDEFINED.body),
            Value::Bits(bits) => bits.map(|bits| algebra.constant(bits, bytes).body),
            Value::Linear(linear) => linear.bodies(algebra, threads),
            Value::Atoms(atoms, own) => atoms.map(|atom| algebra.whole(atom, *own)),
            Value::Parts(values, size) => {
                let each: Vec<Each<Body>> =
                    values.iter().map(|value| value.bodies(algebra, *size, threads)).collect();
                if each.iter().all(|bodies| bodies.uniform().is_some()) {
                    let all: Vec<Body> = each.iter().map(|bodies| bodies.at(0)).collect();
                    return Each::All(algebra.pack(&all, *size).body);
                }
                Each::from_fn(threads, |thread| {
                    let all: Vec<Body> = each.iter().map(|bodies| bodies.at(thread)).collect();
                    algebra.pack(&all, *size).body
                })
            }
        }
    }

    /// The same as atoms.
    pub fn atoms(&self, algebra: &mut Algebra, bytes: u8, threads: usize) -> Each<Atom> {
        match self {
            Value::Atoms(atoms, own) if *own == bytes => atoms.clone(),
            Value::Atoms(..)
            | Value::Undefined
            | Value::Bits(_)
            | Value::Linear(_)
            | Value::Parts(..) => self.bodies(algebra, bytes, threads).map(Atom::whole),
        }
    }

    /// Numbers, sign-extended from so many bits, or a linear form.
    pub fn linear(&self, bits: u32) -> Option<Rc<Linear>> {
        match self {
            Value::Linear(linear) => Some(linear.clone()),
            Value::Bits(numbers) => {
                let shift = 64 - bits.clamp(1, 64);
                let signed = numbers.map(|number| (number << shift) as i64 >> shift);
                Some(Rc::new(Linear::number(signed)))
            }
            Value::Undefined | Value::Atoms(..) | Value::Parts(..) => None,
        }
    }

    /// A form; numbers where it has no symbols.
    pub fn of_linear(linear: Linear, bits: u32) -> Self {
        let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        match linear.as_number() {
            Some(numbers) => Value::Bits(numbers.map(|number| number as u64 & mask)),
            None => Value::Linear(Rc::new(linear)),
        }
    }

    /// Each thread's value taken from the thread that `source` names.
    pub fn permuted(&self, threads: usize, source: &dyn Fn(usize) -> usize) -> Self {
        match self {
            Value::Undefined => Value::Undefined,
            Value::Bits(bits) => Value::Bits(bits.permuted(threads, source)),
            Value::Linear(linear) => Value::Linear(Rc::new(linear.permuted(threads, source))),
            Value::Atoms(atoms, bytes) => Value::Atoms(atoms.permuted(threads, source), *bytes),
            Value::Parts(values, size) => Value::Parts(
                values.iter().map(|value| value.permuted(threads, source)).collect(),
                *size,
            ),
        }
    }

    /// `self` where the flag holds, else `other`; both of `bytes` bytes.
    pub fn chosen(
        &self,
        other: &Self,
        flags: &Each<bool>,
        algebra: &mut Algebra,
        bytes: u8,
    ) -> Self {
        let Each::By(by) = flags else {
            return if flags.at(0) { self.clone() } else { other.clone() };
        };
        let threads = by.len();
        match (self, other) {
            (Value::Undefined, Value::Undefined) => Value::Undefined,
            (Value::Bits(a), Value::Bits(b)) => {
                Value::Bits(Each::from_fn(threads, |t| if by[t] { a.at(t) } else { b.at(t) }))
            }
            (Value::Linear(_) | Value::Bits(_), Value::Linear(_) | Value::Bits(_)) => {
                let bits = 8 * u32::from(bytes);
                match (self.linear(bits), other.linear(bits)) {
                    (Some(a), Some(b)) => Value::of_linear(a.chosen(&b, flags), bits),
                    _ => Value::Undefined,
                }
            }
            (Value::Atoms(a, x), Value::Atoms(b, y)) if x == y => {
                Value::Atoms(Each::from_fn(threads, |t| if by[t] { a.at(t) } else { b.at(t) }), *x)
            }
            (Value::Atoms(a, x), Value::Undefined) => Value::Atoms(
                Each::from_fn(threads, |t| if by[t] { a.at(t) } else { Atom::UNDEFINED }),
                *x,
            ),
            (Value::Undefined, Value::Atoms(b, y)) => Value::Atoms(
                Each::from_fn(threads, |t| if by[t] { Atom::UNDEFINED } else { b.at(t) }),
                *y,
            ),
            (Value::Parts(_, size), _) | (_, Value::Parts(_, size)) if bytes > *size => {
                let (a, b) = (self.split(bytes, *size), other.split(bytes, *size));
                let each = a.iter().zip(&b);
                let each = each.map(|(a, b)| a.chosen(b, flags, algebra, *size)).collect();
                parts(each, *size)
            }
            _ => {
                let (a, b) =
                    (self.atoms(algebra, bytes, threads), other.atoms(algebra, bytes, threads));
                Value::Atoms(
                    Each::from_fn(threads, |t| if by[t] { a.at(t) } else { b.at(t) }),
                    bytes,
                )
            }
        }
    }
}
