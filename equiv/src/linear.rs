//! Integers that are linear in symbols: addresses, indices, bounds.
//!
//! # Idea
//! An address is `base + 4 * (N * pid) + 512`: products of symbols with a coefficient a thread, and
//! a number a thread. Sums, differences and multiples stay in this form, so equal addresses have
//! equal forms however the compiler computed them.
//! # Invariants
//! - **P1** Monomials are sorted and none has the coefficient 0 in every thread.
//! - **P2** Coefficients are integers, not residues: 32-bit index arithmetic is taken not to
//!   overflow, as Triton's own lowering takes it (`nsw`).
//! # Held by
//! P1: [`Linear::combine`], the only maker of sums. P2: an assumption, in the crate's docs.

use smallvec::{SmallVec, smallvec};

use crate::{
    each::Each,
    graph::Node,
    term::{Algebra, Body, Mixer, seed},
};

/// A product of symbols, by their names, sorted.
pub type Monomial = SmallVec<[Body; 2]>;

/// The largest number of symbols in a product, and of products in a sum.
const MOST_FACTORS: usize = 6;
const MOST_TERMS: usize = 24;

#[derive(Clone, Debug)]
pub struct Linear {
    terms: SmallVec<[(Monomial, Each<i64>); 3]>,
    constant: Each<i64>,
}

impl Linear {
    pub fn symbol(name: Body) -> Self {
        Self { terms: smallvec![(smallvec![name], Each::All(1))], constant: Each::All(0) }
    }

    pub fn number(constant: Each<i64>) -> Self {
        Self { terms: smallvec![], constant }
    }

    pub fn as_number(&self) -> Option<&Each<i64>> {
        self.terms.is_empty().then_some(&self.constant)
    }

    pub fn constant(&self) -> &Each<i64> {
        &self.constant
    }

    /// Monomials and their coefficients.
    pub fn terms(&self) -> &[(Monomial, Each<i64>)] {
        &self.terms
    }

    /// `self + other * times`; `None` where the form would grow too large, or a number overflow.
    pub fn combine(&self, other: &Self, times: i64) -> Option<Self> {
        let mut fine = true;
        let mut sum = |a: i64, b: i64| {
            let product = b.checked_mul(times).and_then(|product| a.checked_add(product));
            fine &= product.is_some();
            product.unwrap_or(0)
        };
        let constant = self.constant.zip(&other.constant, &mut sum);
        let mut terms = self.terms.clone();
        for (factors, coefficient) in &other.terms {
            match terms.binary_search_by(|(known, _)| known.cmp(factors)) {
                Ok(at) => {
                    let total = terms[at].1.zip(coefficient, &mut sum);
                    terms[at].1 = total;
                }
                Err(at) => {
                    let own = Each::All(0).zip(coefficient, &mut sum);
                    terms.insert(at, (factors.clone(), own));
                }
            }
        }
        terms.retain(|(_, coefficient)| !coefficient.all(|value| value == 0));
        (fine && terms.len() <= MOST_TERMS).then_some(Self { terms, constant })
    }

    /// Multiplied by a number a thread.
    pub fn scaled(&self, by: &Each<i64>) -> Option<Self> {
        let mut fine = true;
        let mut times = |a: i64, b: i64| {
            let product = a.checked_mul(b);
            fine &= product.is_some();
            product.unwrap_or(0)
        };
        let constant = self.constant.zip(by, &mut times);
        let mut terms: SmallVec<_> = self
            .terms
            .iter()
            .map(|(factors, coefficient)| (factors.clone(), coefficient.zip(by, &mut times)))
            .collect();
        terms.retain(|(_, coefficient): &mut (Monomial, Each<i64>)| {
            !coefficient.all(|value| value == 0)
        });
        fine.then_some(Self { terms, constant })
    }

    /// The product of two forms.
    pub fn product(&self, other: &Self) -> Option<Self> {
        let mut total = other.scaled(&self.constant)?;
        for (factors, coefficient) in &self.terms {
            let mut part = Self::number(Each::All(0));
            for (more, times) in &other.terms {
                let mut all = factors.clone();
                all.extend_from_slice(more);
                all.sort_unstable();
                if all.len() > MOST_FACTORS {
                    return None;
                }
                let one = Self { terms: smallvec![(all, times.clone())], constant: Each::All(0) };
                part = part.combine(&one, 1)?;
            }
            let own = Self {
                terms: smallvec![(factors.clone(), other.constant.clone())],
                constant: Each::All(0),
            };
            part = part.combine(&own, 1)?;
            total = total.combine(&part.scaled(coefficient)?, 1)?;
        }
        total.terms.retain(|(_, coefficient)| !coefficient.all(|value| value == 0));
        Some(total)
    }

    /// Whether `2^bits` divides everything but the constant.
    pub fn symbols_divide_by(&self, bits: u32) -> bool {
        let mask = (1i64 << bits.min(62)) - 1;
        self.terms.iter().all(|(_, coefficient)| coefficient.all(|value| value & mask == 0))
    }

    /// Divided by `2^bits`, rounded down, where the symbols allow it.
    pub fn shifted_down(&self, bits: u32) -> Option<Self> {
        if !self.symbols_divide_by(bits) || bits > 62 {
            return None;
        }
        let terms = self.terms.iter().map(|(f, c)| (f.clone(), c.map(|v| v >> bits))).collect();
        Some(Self { terms, constant: self.constant.map(|value| value >> bits) })
    }

    /// Coefficients and constant of the thread that `source` names.
    pub fn permuted(&self, threads: usize, source: impl Fn(usize) -> usize) -> Self {
        let terms = self
            .terms
            .iter()
            .map(|(factors, c)| (factors.clone(), c.permuted(threads, &source)))
            .collect();
        Self { terms, constant: self.constant.permuted(threads, &source) }
    }

    /// `self` where the flag holds, else `other`.
    pub fn chosen(&self, other: &Self, flags: &Each<bool>) -> Self {
        let choose = |a: &Each<i64>, b: &Each<i64>| {
            let pairs = a.zip(b, |a, b| (a, b));
            flags.zip(&pairs, |flag, (a, b)| if flag { a } else { b })
        };
        let mut terms: SmallVec<[(Monomial, Each<i64>); 3]> = smallvec![];
        let mut names: Vec<&Monomial> =
            self.terms.iter().chain(&other.terms).map(|(factors, _)| factors).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let of = |form: &Self| {
                let found = form.terms.iter().find(|(factors, _)| factors == name);
                found.map_or(Each::All(0), |(_, coefficient)| coefficient.clone())
            };
            terms.push((name.clone(), choose(&of(self), &of(other))));
        }
        terms.retain(|(_, coefficient)| !coefficient.all(|value| value == 0));
        Self { terms, constant: choose(&self.constant, &other.constant) }
    }

    /// The name of what is left without the constant, in one thread.
    pub fn base(&self, algebra: &mut Algebra, thread: usize) -> Body {
        let mut sum = Body([0, 0]);
        let mut parts = Vec::new();
        for (factors, coefficient) in &self.terms {
            let coefficient = coefficient.at(thread);
            if coefficient == 0 {
                continue;
            }
            let mixer = Mixer::new(seed::MONOMIAL).word(coefficient as u64);
            sum = sum.plus(factors.iter().fold(mixer, |mixer, name| mixer.body(*name)).finish());
            if algebra.graph.is_some() {
                parts.push((factors.clone(), coefficient));
            }
        }
        let body = Mixer::new(seed::LINEAR).body(sum).finish();
        algebra.named(body, || Node::Linear { terms: parts, constant: 0 })
    }

    /// The name of the whole in one thread; a lone symbol's is the symbol's.
    pub fn body(&self, algebra: &mut Algebra, thread: usize) -> Body {
        let constant = self.constant.at(thread);
        let mut live = self.terms.iter().filter(|(_, c)| c.at(thread) != 0);
        match (live.next(), live.next()) {
            (None, None) => {}
            (Some((factors, c)), None)
                if constant == 0 && factors.len() == 1 && c.at(thread) == 1 =>
            {
                return factors[0];
            }
            _ => {}
        }
        let base = self.base(algebra, thread);
        let body = Mixer::new(seed::LINEAR).body(base).word(constant as u64).finish();
        algebra.named(body, || Node::Offset { base, constant })
    }

    /// [`Linear::body`] of every thread.
    pub fn bodies(&self, algebra: &mut Algebra, threads: usize) -> Each<Body> {
        if self.is_uniform() {
            return Each::All(self.body(algebra, 0));
        }
        Each::from_fn(threads, |thread| self.body(algebra, thread))
    }

    /// [`Linear::base`] of every thread.
    pub fn bases(&self, algebra: &mut Algebra, threads: usize) -> Each<Body> {
        if self.terms.iter().all(|(_, coefficient)| coefficient.uniform().is_some()) {
            return Each::All(self.base(algebra, 0));
        }
        Each::from_fn(threads, |thread| self.base(algebra, thread))
    }

    /// Equal in every thread.
    pub fn same_as(&self, other: &Self) -> bool {
        self.combine(other, -1).is_some_and(|difference| {
            difference.terms.is_empty() && difference.constant.all(|value| value == 0)
        })
    }

    /// One form for all threads.
    pub fn is_uniform(&self) -> bool {
        self.constant.uniform().is_some()
            && self.terms.iter().all(|(_, coefficient)| coefficient.uniform().is_some())
    }
}
