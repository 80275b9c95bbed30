//! Predicates: numbers where they are known, conditions where not.
//!
//! # Idea
//! Conditions are kept as conjunctions and complements, so that a guard, a branch and an `and` of
//! one meaning have one name.

use super::{Stop, Truth, Walk};
use crate::{
    each::Each,
    label::LabelId,
    term::Atom,
    value::{Value, parts},
};

impl Walk<'_> {
    pub(super) fn negated(&mut self, value: &Value) -> Value {
        match value {
            Value::Bits(bits) => Value::Bits(bits.map(|bit| bit & 1 ^ 1)),
            Value::Atoms(atoms, bytes) => {
                let [no, yes] = self.truth;
                Value::Atoms(
                    atoms.map(|atom| {
                        if atom == no {
                            yes
                        } else if atom == yes {
                            no
                        } else {
                            atom.flipped()
                        }
                    }),
                    *bytes,
                )
            }
            Value::Undefined | Value::Linear(_) | Value::Parts(..) => Value::Undefined,
        }
    }

    /// Whether both hold.
    pub(super) fn both(&mut self, a: &Value, b: &Value) -> Value {
        if let (Value::Bits(a), Value::Bits(b)) = (a, b) {
            return Value::Bits(a.zip(b, |a, b| a & b & 1));
        }
        let (a, b) = (self.truths(Some(a)), self.truths(Some(b)));
        let label = self.conjunction();
        let label = self.world.labels.get(label).clone();
        let [no, yes] = self.truth;
        let algebra = &mut self.world.algebra;
        let atoms = a.zip(&b, |a, b| match (a, b) {
            (Truth::No, _) | (_, Truth::No) => no,
            (Truth::Yes, Truth::Yes) => yes,
            (Truth::Yes, Truth::If(one)) | (Truth::If(one), Truth::Yes) => one,
            (Truth::If(a), Truth::If(b)) if a == b => a,
            (Truth::If(a), Truth::If(b)) if a == b.flipped() => no,
            (Truth::If(a), Truth::If(b)) => algebra.join(&label, a, b, 0),
        });
        self.predicate(atoms)
    }

    /// Whether both hold, of conditions on the whole CTA.
    pub(super) fn conjoined(&mut self, a: Atom, b: Atom) -> Atom {
        let (a, b) = (Value::Atoms(Each::All(a), 0), Value::Atoms(Each::All(b), 0));
        let both = self.both(&a, &b);
        let [no, yes] = self.truth;
        match self.truths(Some(&both)).at(0) {
            Truth::No => no,
            Truth::Yes => yes,
            Truth::If(atom) => atom,
        }
    }

    fn conjunction(&mut self) -> LabelId {
        let op = bitstable_ptx::ir::Op::IntBinary {
            op: bitstable_ptx::ir::IntBinary::And,
            ty: bitstable_ptx::ir::Scalar::Pred,
            sat: false,
        };
        self.world.labels.of(&op, bitstable_ptx::ir::Scalar::Pred, 0)
    }

    pub(super) fn either(&mut self, a: &Value, b: &Value) -> Value {
        let (a, b) = (self.negated(a), self.negated(b));
        let neither = self.both(&a, &b);
        self.negated(&neither)
    }

    /// Numbers where all are known.
    pub(super) fn predicate(&self, atoms: Each<Atom>) -> Value {
        let [no, yes] = self.truth;
        if atoms.all(|atom| atom == no || atom == yes) {
            return Value::Bits(atoms.map(|atom| u64::from(atom == yes)));
        }
        Value::Atoms(atoms, 0)
    }

    /// `a` where the predicate holds, else `b`.
    pub(super) fn selected(&mut self, p: &Value, a: &Value, b: &Value, bytes: u8) -> Value {
        let truths = self.truths(Some(p));
        if truths.all(|truth| !matches!(truth, Truth::If(_))) {
            let flags = truths.map(|truth| truth == Truth::Yes);
            return a.chosen(b, &flags, &mut self.world.algebra, bytes);
        }
        if bytes == 0 {
            return self.selected_predicate(p, a, b);
        }
        let size = |value: &Value| if let Value::Parts(_, size) = value { *size } else { bytes };
        let unit = size(a).min(size(b));
        if unit < bytes {
            let (a, b) = (a.split(bytes, unit), b.split(bytes, unit));
            let each = a.iter().zip(&b).map(|(a, b)| self.selected(p, a, b, unit)).collect();
            return parts(each, unit);
        }
        let threads = self.threads;
        let algebra = &mut self.world.algebra;
        let (a, b) = (a.bodies(algebra, bytes, threads), b.bodies(algebra, bytes, threads));
        let arms = a.zip(&b, |a, b| (a, b));
        let atoms = truths.zip(&arms, |truth, (a, b)| match truth {
            Truth::Yes => Atom::whole(a),
            Truth::No => Atom::whole(b),
            Truth::If(p) if p.is_undefined() => Atom::UNDEFINED,
            Truth::If(p) => algebra.select(p, a, b),
        });
        self.number_or_atoms(atoms, bytes)
    }

    fn selected_predicate(&mut self, p: &Value, a: &Value, b: &Value) -> Value {
        let other = self.negated(p);
        let (a, b) = (self.both(p, a), self.both(&other, b));
        self.either(&a, &b)
    }

    /// A chosen integer that all threads share is a symbol.
    pub(super) fn number_or_atoms(&self, atoms: Each<Atom>, bytes: u8) -> Value {
        Value::Atoms(atoms, bytes)
    }

    /// Which threads do something, where that is known of all.
    pub(super) fn known(&self, under: Option<&Value>, what: &str) -> Result<Each<bool>, Stop> {
        let truths = self.truths(under);
        if truths.all(|truth| !matches!(truth, Truth::If(_))) {
            return Ok(truths.map(|truth| truth == Truth::Yes));
        }
        self.stop(format!("{what} under a condition that is not known"))
    }
}
