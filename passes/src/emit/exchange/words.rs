//! Values as registers, which is what lanes exchange.
//!
//! # Idea
//! Wide values travel in 32-bit pieces. Narrow ones travel two or four to a register where a move
//! is an instruction of its own, and one to a register where a move is free.
//! # Invariants
//! - **W1** [`Packed::unpack`] of what [`Packed::pack`] made gives the values back, in order.
//! - **W2** No word is poison where a value is not: what is not filled is zero.
//! # Not here
//! How a word moves (`exchange.rs`).

use melior::ir::{Type, ValueLike, r#type::IntegerType};

use crate::{build::Builder, element::Element, ir::Val, text};

/// Whether narrow values share a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Density {
    /// They do: fewer moves.
    Shared,
    /// They do not: no packing.
    Alone,
}

/// One value, or several narrow ones of one type, in one or two registers.
#[derive(Clone, Debug)]
struct Parcel<'c> {
    /// The position of the first value.
    first: usize,
    /// How many values.
    count: usize,
    /// Their element type.
    element: Element,
    /// Their type.
    ty: Type<'c>,
}

/// Values that became registers.
pub struct Packed<'c> {
    /// The registers: `f32`, `i32`, or `i16` where the density is [`Density::Alone`].
    pub words: Vec<Val<'c>>,
    parcels: Vec<Parcel<'c>>,
    density: Density,
}

impl<'c> Packed<'c> {
    /// Packs `values`, runs of which may have different types.
    ///
    /// # Panics
    /// On a type that is not an [`Element`]: sites with other types are refused before.
    pub fn pack(b: Builder<'c>, values: &[Val<'c>], density: Density) -> Packed<'c> {
        let parcels = parcels(values, density);
        let words = parcels
            .iter()
            .flat_map(|p| p.pack(b, &values[p.first..][..p.count], density))
            .collect();
        Packed { words, parcels, density }
    }

    /// The values that `words` hold, which stand for the words that were packed.
    pub fn unpack(&self, b: Builder<'c>, words: &[Val<'c>]) -> Vec<Val<'c>> {
        let mut rest = words;
        let mut values = Vec::new();
        for parcel in &self.parcels {
            let (own, others) = rest.split_at(parcel.words());
            values.extend(parcel.unpack(b, own, self.density));
            rest = others;
        }
        assert!(rest.is_empty(), "more words than were packed");
        values
    }
}

fn parcels<'c>(values: &[Val<'c>], density: Density) -> Vec<Parcel<'c>> {
    let mut parcels: Vec<Parcel<'c>> = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let ty = value.r#type();
        let element = match parcels.last() {
            Some(last) if last.ty == ty => last.element,
            _ => element(ty),
        };
        let room = match density {
            Density::Shared => 32 / stored_bits(element).min(32),
            Density::Alone => 1,
        };
        match parcels.last_mut() {
            Some(last) if last.element == element && last.count < room as usize => last.count += 1,
            _ => parcels.push(Parcel { first: i, count: 1, element, ty }),
        }
    }
    parcels
}

fn element(ty: Type<'_>) -> Element {
    let printed = text::printed_type(ty);
    match Element::parse(&printed) {
        Some(element) => element,
        None => panic!("a value of type {printed} has no registers to travel in"),
    }
}

/// The width that a value of this type takes in a register: a truth value takes a byte.
fn stored_bits(element: Element) -> u32 {
    element.bits().max(8)
}

impl<'c> Parcel<'c> {
    /// How many registers it takes.
    fn words(&self) -> usize {
        if self.element.bits() == 64 { 2 } else { 1 }
    }

    fn pack(&self, b: Builder<'c>, values: &[Val<'c>], density: Density) -> Vec<Val<'c>> {
        let i32: Type<'c> = IntegerType::new(b.context(), 32).into();
        match self.element {
            Element::F32 | Element::Int(32) => vec![values[0]],
            Element::F64 | Element::Int(64) => {
                let pair = cast(b, values[0], b.ty("vector<2xi32>"));
                (0..2).map(|i| extract(b, pair, i, i32)).collect()
            }
            _ if self.count > 1 => {
                let narrow = values.iter().map(|&v| self.integer(b, v)).collect::<Vec<_>>();
                let ty = self.vector(b);
                let mut all = b.one("llvm.mlir.zero", &[], ty, &[]);
                for (i, value) in narrow.into_iter().enumerate() {
                    let at = b.i32(i as i32);
                    all = b.one("llvm.insertelement", &[all, value, at], ty, &[]);
                }
                vec![cast(b, all, i32)]
            }
            _ => {
                let narrow = self.integer(b, values[0]);
                let as_it_is = density == Density::Alone && stored_bits(self.element) == 16;
                vec![if as_it_is { narrow } else { b.one("llvm.zext", &[narrow], i32, &[]) }]
            }
        }
    }

    fn unpack(&self, b: Builder<'c>, words: &[Val<'c>], density: Density) -> Vec<Val<'c>> {
        match self.element {
            Element::F32 | Element::Int(32) => vec![words[0]],
            Element::F64 | Element::Int(64) => {
                let ty = b.ty("vector<2xi32>");
                let mut pair = b.one("llvm.mlir.undef", &[], ty, &[]);
                for (i, &word) in words.iter().enumerate() {
                    pair = b.one("llvm.insertelement", &[pair, word, b.i32(i as i32)], ty, &[]);
                }
                vec![cast(b, pair, self.ty)]
            }
            _ if self.count > 1 => {
                let all = cast(b, words[0], self.vector(b));
                let narrow = self.narrow(b);
                (0..self.count).map(|i| self.value(b, extract(b, all, i, narrow))).collect()
            }
            _ => {
                let narrow = self.narrow(b);
                let as_it_is = density == Density::Alone && stored_bits(self.element) == 16;
                let narrow = if as_it_is { words[0] } else { truncate(b, words[0], narrow) };
                vec![self.value(b, narrow)]
            }
        }
    }

    fn narrow(&self, b: Builder<'c>) -> Type<'c> {
        IntegerType::new(b.context(), stored_bits(self.element)).into()
    }

    fn vector(&self, b: Builder<'c>) -> Type<'c> {
        let bits = stored_bits(self.element);
        b.ty(&format!("vector<{}xi{bits}>", 32 / bits))
    }

    /// A narrow value as an integer of its stored width.
    fn integer(&self, b: Builder<'c>, value: Val<'c>) -> Val<'c> {
        match self.element {
            Element::F16 | Element::Bf16 => cast(b, value, self.narrow(b)),
            Element::Int(1) => b.one("llvm.zext", &[value], self.narrow(b), &[]),
            _ => value,
        }
    }

    /// The narrow value whose integer is `integer`.
    fn value(&self, b: Builder<'c>, integer: Val<'c>) -> Val<'c> {
        match self.element {
            Element::F16 | Element::Bf16 => cast(b, integer, self.ty),
            Element::Int(1) => truncate(b, integer, self.ty),
            _ => integer,
        }
    }
}

/// `value` with the same bits in another type.
pub fn cast<'c>(b: Builder<'c>, value: Val<'c>, ty: Type<'c>) -> Val<'c> {
    if value.r#type() == ty { value } else { b.one("llvm.bitcast", &[value], ty, &[]) }
}

fn truncate<'c>(b: Builder<'c>, value: Val<'c>, ty: Type<'c>) -> Val<'c> {
    b.one("llvm.trunc", &[value], ty, &[])
}

fn extract<'c>(b: Builder<'c>, vector: Val<'c>, index: usize, ty: Type<'c>) -> Val<'c> {
    b.one("llvm.extractelement", &[vector, b.i32(index as i32)], ty, &[])
}
