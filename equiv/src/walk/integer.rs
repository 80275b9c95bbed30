//! Index arithmetic: what stays linear in symbols.
//!
//! # Idea
//! Addresses are sums of products, shifts, masks and disjoint ors. Each rule here is exact on
//! integers that do not overflow (P2 of `linear.rs`); where none applies, the result is a term, and
//! a symbol if all threads share it.

use bitstable_ptx::ir::{Class, Compare, Half, IntBinary, IntUnary, Logic, Op, Scalar};
use smallvec::{SmallVec, smallvec};

use super::{Stop, Walk, control::register_bytes};
use crate::{each::Each, linear::Linear, term::Body, value::Value};

impl Walk<'_> {
    /// The result as a linear form, where the operands are and the operation keeps them so.
    pub(super) fn linear_result(&mut self, op: &Op, sources: &[Value]) -> Option<Value> {
        if let Op::Cvta { .. } = op {
            return Some(sources.first()?.clone());
        }
        if let Op::IntBinary { op, ty, sat: false } = op {
            return if ty.lanes() == 1 { self.binary(*op, *ty, sources) } else { None };
        }
        if let Op::IntUnary { op: IntUnary::Neg, ty } = op {
            let a = self.form(sources.first()?, *ty)?;
            return Some(Value::of_linear(a.scaled(&Each::All(-1))?, ty.bits()));
        }
        if let (Op::Mad { half: half @ (Half::Lo | Half::Wide), ty, sat: false }, [a, b, c]) =
            (op, sources)
        {
            let wide = if *half == Half::Wide { 2 * ty.bits() } else { ty.bits() };
            let product = self.form(a, *ty)?.product(&*self.form(b, *ty)?)?;
            let c = c_form(self, c, wide)?;
            return Some(Value::of_linear(product.combine(&c, 1)?, wide));
        }
        if let (Op::Bfe { ty }, [a, start, length]) = (op, sources)
            && ty.class() != Class::Signed
        {
            let (start, length) = (number(start)? as u32, number(length)? as u32);
            let form = self.form(a, *ty)?.shifted_down(start)?;
            return low_bits(&form, length);
        }
        let Op::Cvt { to, from, sat: false, .. } = op else { return None };
        let integer = |ty: &Scalar| {
            ty.bits() >= 32 && matches!(ty.class(), Class::Signed | Class::Unsigned | Class::Bits)
        };
        let Value::Linear(form) = sources.first()? else { return None };
        (integer(to) && integer(from)).then(|| Value::Linear(form.clone()))
    }

    /// A form of a value; a term that all threads share is a symbol.
    fn form(&mut self, value: &Value, ty: Scalar) -> Option<std::rc::Rc<Linear>> {
        match value {
            Value::Bits(bits) if ty.class() == Class::Unsigned && ty.bits() == 32 => {
                // Unsigned where that is how it widens; below 2^31 the same.
                Some(std::rc::Rc::new(Linear::number(bits.map(|bits| i64::from(bits as u32)))))
            }
            Value::Atoms(Each::All(atom), bytes) if *bytes >= 4 && !atom.is_undefined() => {
                let body = self.world.algebra.whole(*atom, *bytes);
                Some(std::rc::Rc::new(Linear::symbol(body)))
            }
            Value::Undefined
            | Value::Bits(_)
            | Value::Linear(_)
            | Value::Atoms(..)
            | Value::Parts(..) => value.linear(ty.bits()),
        }
    }

    fn binary(&mut self, op: IntBinary, ty: Scalar, sources: &[Value]) -> Option<Value> {
        let [x, y] = sources else { return None };
        // Data stay data: only a form or a number makes a form.
        if !matches!(x, Value::Linear(_)) && !matches!(y, Value::Linear(_)) {
            return None;
        }
        let bits = ty.bits();
        let signed = if bits == 32 { Scalar::S32 } else { ty };
        let of = |form: Linear| Some(Value::of_linear(form, bits));
        match op {
            IntBinary::Add => of(self.form(x, signed)?.combine(&*self.form(y, signed)?, 1)?),
            IntBinary::Sub => of(self.form(x, signed)?.combine(&*self.form(y, signed)?, -1)?),
            IntBinary::Mul(Half::Lo) => {
                of(self.form(x, signed)?.product(&*self.form(y, signed)?)?)
            }
            IntBinary::Mul(Half::Wide) => {
                let product = self.form(x, ty)?.product(&*self.form(y, ty)?)?;
                Some(Value::of_linear(product, 2 * bits))
            }
            IntBinary::Shl => {
                let Value::Bits(by) = y else { return None };
                let factors = by.map(|by| if by < 62 { 1i64 << by } else { 0 });
                if !by.all(|by| by < 62) {
                    return None;
                }
                of(self.form(x, signed)?.scaled(&factors)?)
            }
            IntBinary::Shr => of(self.form(x, signed)?.shifted_down(number(y)? as u32)?),
            IntBinary::And => {
                let (form, mask) = if let Value::Bits(_) = y { (x, y) } else { (y, x) };
                let mask = number(mask)?;
                let form = self.form(form, signed)?;
                let width = if bits == 32 { 0xffff_ffff } else { u64::MAX };
                let low = mask.trailing_ones();
                if mask == (1u64.checked_shl(low)?).wrapping_sub(1) {
                    return low_bits(&form, low);
                }
                let high = mask.trailing_zeros();
                if mask == width & !((1u64 << high) - 1) && form.symbols_divide_by(high) {
                    let rest = form.constant().map(|c| c & !((1i64 << high) - 1));
                    return of(with_constant(&form, rest)?);
                }
                None
            }
            IntBinary::Or | IntBinary::Xor => {
                let (form, small) = if let Value::Bits(_) = y { (x, y) } else { (y, x) };
                let Value::Bits(small) = small else { return None };
                let form = self.form(form, signed)?;
                let mut width = 0;
                let fits = small.all(|bits| {
                    width = width.max(64 - bits.leading_zeros());
                    bits < 1 << 31
                });
                if !fits || !form.symbols_divide_by(width) {
                    return None;
                }
                let join = |c: i64, b: u64| {
                    if op == IntBinary::Or { c | b as i64 } else { c ^ b as i64 }
                };
                let constant = form.constant().zip(small, join);
                of(with_constant(&form, constant)?)
            }
            IntBinary::Mul(Half::Hi)
            | IntBinary::Mul24(_)
            | IntBinary::Div
            | IntBinary::Rem
            | IntBinary::Min
            | IntBinary::Max => None,
        }
    }

    /// `setp`, and its complement.
    pub(super) fn comparison(
        &mut self,
        op: &Op,
        (cmp, ty, join): (Compare, Scalar, Option<Logic>),
        sources: &[Value],
        targets: usize,
    ) -> Result<SmallVec<[Value; 2]>, Stop> {
        let [a, b, rest @ ..] = sources else { return self.stop("a comparison of one value") };
        let plain = match self.difference(cmp, ty, a, b) {
            Some(value) => value,
            None => self.compared(op, ty, a, b)?,
        };
        let joined = |walk: &mut Self, value: &Value| match (join, rest) {
            (None, _) | (_, []) => Ok(value.clone()),
            (Some(Logic::And), [p, ..]) => Ok(walk.both(value, p)),
            (Some(Logic::Or), [p, ..]) => Ok(walk.either(value, p)),
            (Some(Logic::Xor), _) => walk.stop("a comparison joined by xor"),
        };
        let first = joined(self, &plain)?;
        if targets < 2 {
            return Ok(smallvec![first]);
        }
        let complement = self.negated(&plain);
        let second = joined(self, &complement)?;
        Ok(smallvec![first, second])
    }

    /// Signed integers are compared by the sign of their difference, in one spelling.
    fn difference(&mut self, cmp: Compare, ty: Scalar, a: &Value, b: &Value) -> Option<Value> {
        let equality = matches!(cmp, Compare::Eq | Compare::Ne);
        let signed = ty.class() == Class::Signed;
        let plain = equality && matches!(ty.class(), Class::Bits | Class::Unsigned);
        if !signed && !plain {
            return None;
        }
        if !matches!(a, Value::Linear(_)) && !matches!(b, Value::Linear(_)) {
            return None;
        }
        let wide = if ty.bits() == 32 { Scalar::S32 } else { ty };
        let (a, b) = (self.form(a, wide)?, self.form(b, wide)?);
        let minus_one = Linear::number(Each::All(-1));
        let (form, holds_when) = match cmp {
            Compare::Eq => (a.combine(&b, -1)?, true),
            Compare::Ne => (a.combine(&b, -1)?, false),
            Compare::Lt => (a.combine(&b, -1)?, true),
            Compare::Ge => (a.combine(&b, -1)?, false),
            Compare::Gt => (b.combine(&a, -1)?, true),
            Compare::Le => (b.combine(&a, -1)?, false),
            Compare::Lo
            | Compare::Ls
            | Compare::Hi
            | Compare::Hs
            | Compare::Equ
            | Compare::Neu
            | Compare::Ltu
            | Compare::Leu
            | Compare::Gtu
            | Compare::Geu
            | Compare::Num
            | Compare::Nan => return None,
        };
        // `form < 0`, or `-form - 1 < 0` where the first symbol has a negative coefficient.
        let (form, flipped) = self.leading_positive(form, equality, &minus_one)?;
        let holds_when = holds_when != flipped;
        if let Some(numbers) = form.as_number() {
            let holds = |n: i64| if equality { n == 0 } else { n < 0 };
            return Some(Value::Bits(numbers.map(|n| u64::from(holds(n) == holds_when))));
        }
        let name = if equality { "is zero" } else { "is negative" };
        let id = self.world.labels.named(name);
        let label = self.world.labels.get(id).clone();
        let threads = self.threads;
        let bodies: Each<Body> = form.bodies(&mut self.world.algebra, threads);
        let algebra = &mut self.world.algebra;
        let atoms = bodies.map(|body| {
            let atom = algebra.apply(&label, &[body]);
            if holds_when { atom } else { atom.flipped() }
        });
        // Threads whose symbols cancel compare numbers.
        let [no, yes] = self.truth;
        let atoms = if form.terms().iter().all(|(_, c)| c.uniform().is_some()) {
            atoms
        } else {
            Each::from_fn(threads, |thread| {
                if form.terms().iter().any(|(_, c)| c.at(thread) != 0) {
                    return atoms.at(thread);
                }
                let n = form.constant().at(thread);
                let holds = if equality { n == 0 } else { n < 0 };
                if holds == holds_when { yes } else { no }
            })
        };
        Some(self.predicate(atoms))
    }

    /// The form whose first coefficient is positive, and whether the comparison was turned round.
    fn leading_positive(
        &self,
        form: Linear,
        equality: bool,
        minus_one: &Linear,
    ) -> Option<(Linear, bool)> {
        let negative = form.terms().first().is_some_and(|(_, c)| c.all(|c| c < 0));
        if !negative {
            return Some((form, false));
        }
        let turned = form.scaled(&Each::All(-1))?;
        if equality {
            return Some((turned, false));
        }
        // form < 0 is not (-form - 1 < 0).
        Some((turned.combine(minus_one, 1)?, true))
    }

    /// A comparison of data.
    fn compared(&mut self, op: &Op, ty: Scalar, a: &Value, b: &Value) -> Result<Value, Stop> {
        let mut plain = op.clone();
        if let Op::Setp { join, .. } = &mut plain {
            *join = None;
        }
        let bytes = register_bytes(ty.bits());
        let id = self.world.labels.of(&plain, Scalar::Pred, self.module.target.sm);
        let label = self.world.labels.get(id).clone();
        let threads = self.threads;
        let algebra = &mut self.world.algebra;
        let (a, b) = (a.bodies(algebra, bytes, threads), b.bodies(algebra, bytes, threads));
        let atoms = a.zip(&b, |a, b| algebra.apply(&label, &[a, b]));
        Ok(self.predicate(atoms))
    }

    /// `and`, `or`, `xor`, `not` on predicates.
    pub(super) fn logic(
        &mut self,
        op: &Op,
        sources: &[Value],
    ) -> Result<SmallVec<[Value; 2]>, Stop> {
        let value = match (op, sources) {
            (Op::IntBinary { op: IntBinary::And, .. }, [a, b]) => self.both(a, b),
            (Op::IntBinary { op: IntBinary::Or, .. }, [a, b]) => self.either(a, b),
            (Op::IntBinary { op: IntBinary::Xor, .. }, [a, b]) => {
                let not_b = self.negated(b);
                self.selected(a, &not_b, b, 0)
            }
            (Op::IntUnary { op: IntUnary::Not, .. }, [a]) => self.negated(a),
            _ => return self.stop("an operation on predicates that is not followed"),
        };
        Ok(smallvec![value])
    }
}

fn c_form(walk: &mut Walk<'_>, value: &Value, bits: u32) -> Option<std::rc::Rc<Linear>> {
    walk.form(value, if bits == 64 { Scalar::S64 } else { Scalar::S32 })
}

fn number(value: &Value) -> Option<u64> {
    if let Value::Bits(bits) = value { bits.uniform() } else { None }
}

fn with_constant(form: &Linear, constant: Each<i64>) -> Option<Linear> {
    let old = Linear::number(form.constant().clone());
    form.combine(&old, -1)?.combine(&Linear::number(constant), 1)
}

/// The low bits of a form whose symbols do not reach them.
fn low_bits(form: &Linear, bits: u32) -> Option<Value> {
    if bits >= 62 || !form.symbols_divide_by(bits) {
        return None;
    }
    let mask = (1i64 << bits) - 1;
    Some(Value::Bits(form.constant().map(|c| (c & mask) as u64)))
}
