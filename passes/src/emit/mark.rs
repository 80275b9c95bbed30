//! Marks in the machine code: which register holds which part of a pinned reduction.
//!
//! # Idea
//! A checker of the final PTX (`bitstable-equiv`) has to know where a reduction's elements enter it
//! and where its results leave. A mark is inline assembly that moves a value to another register and
//! says in a comment what it is; the comment reaches PTX. An element's mark has its place in the
//! tensor, as the operand's layout gives it; a combine's mark says that one combine ended here, and
//! what it combined is for the checker to find out; a result's mark has its place in the result.
//!
//! The comment is `bitstable.<what> pin=<n> …`, numbers in hexadecimal:
//! - `element`: `axis=<bits below the axis>,<bits of the axis>`, `at=<position in lane 0 of warp 0>`,
//!   `lane=` and `warp=` what each bit of the lane and of the warp moves the position by (exclusive
//!   or), `may=none|fma|any` what the combine function may be compiled to beyond operations that
//!   round once, and `open` on a reduction's first;
//! - `combine`: nothing more;
//! - `result`: `at`, `lane` and `warp`, of the result's shape.
//!
//! `narrow=` lists the bits of each operand that is narrower than the register it is moved in, or 0.
//! # Invariants
//! - **K1** A mark moves one value of each operand of the reduction, in their order, on one line.
//! - **K2** Marks have side effects in LLVM's eyes: they keep their order, none is dropped or shared.
//! - **K3** A mark changes no bit, and no instruction is left of it in the machine code.
//! # Held by
//! K1: [`Marks::mark`]. K2: `has_side_effects`. K3: `tests/python/test_verify.py`.

use std::fmt::Write;

use bitstable_lowering::{
    layout::{Basis, LinearLayout},
    plan::Site,
};
use melior::ir::{Type, attribute::StringAttribute};

use crate::{
    build::Builder,
    element::Element,
    emit::combine::{Combine, Freedom},
    ir::Val,
};

/// The marks of one reduction.
pub struct Marks {
    pin: usize,
    /// Bits of a position below those along the axis, and along it.
    axis: (u32, u32),
    may: &'static str,
}

impl Marks {
    /// The marks of the module's pinned reduction number `pin`.
    pub fn new(pin: usize, site: &Site, combine: &Combine<'_>) -> Marks {
        let shape = &site.source.shape;
        let may = match combine.freedom() {
            Freedom::RoundsOnce => "none",
            Freedom::Fma => "fma",
            Freedom::Expanded => "any",
        };
        Marks { pin, axis: (shape.offset(site.axis), shape.bits(site.axis)), may }
    }

    /// Marks the elements that register `register` of `layout` holds.
    pub fn elements<'c>(
        &self,
        b: Builder<'c>,
        layout: &LinearLayout,
        register: u32,
        values: &[(Val<'c>, Element)],
    ) -> Vec<Val<'c>> {
        let (below, along) = self.axis;
        let open = if register == 0 { " open" } else { "" };
        let place = place(layout, register);
        let more = format!(" axis={below:x},{along:x} may={}{place}{open}", self.may);
        self.mark(b, "element", &more, values)
    }

    /// Marks what one combine made.
    pub fn combined<'c>(&self, b: Builder<'c>, values: &[(Val<'c>, Element)]) -> Vec<Val<'c>> {
        self.mark(b, "combine", "", values)
    }

    /// Marks the results that register `register` of `layout` holds.
    pub fn results<'c>(
        &self,
        b: Builder<'c>,
        layout: &LinearLayout,
        register: u32,
        values: &[(Val<'c>, Element)],
    ) -> Vec<Val<'c>> {
        self.mark(b, "result", &place(layout, register), values)
    }

    fn mark<'c>(
        &self,
        b: Builder<'c>,
        what: &str,
        more: &str,
        values: &[(Val<'c>, Element)],
    ) -> Vec<Val<'c>> {
        let count = values.len();
        let held: Vec<Held> = values.iter().map(|(_, element)| Held::of(*element)).collect();
        let mut text = String::new();
        for (i, held) in held.iter().enumerate() {
            // A `String` takes whatever is written to it.
            let _ = write!(text, "mov.b{} ${i}, ${}; ", held.bits, count + i);
        }
        let narrow: Vec<String> = held.iter().map(|held| format!("{:x}", held.narrow)).collect();
        let _ = write!(text, "// bitstable.{what} pin={:x}", self.pin);
        let _ = write!(text, " narrow={}{more}", narrow.join(","));
        let outputs = held.iter().map(|held| format!("=&{}", held.register));
        let inputs = held.iter().map(|held| held.register.to_owned());
        let constraints = outputs.chain(inputs).collect::<Vec<_>>().join(",");
        let inside: Vec<Val<'c>> =
            values.iter().zip(&held).map(|((value, _), held)| held.widened(b, *value)).collect();
        let types: Vec<String> = held.iter().map(|held| held.ty.clone()).collect();
        let moved = moved(b, (&text, &constraints), &inside, &types);
        let back = |(value, (held, (_, element))): (Val<'c>, (&Held, &(Val<'c>, Element)))| {
            held.narrowed(b, value, *element)
        };
        moved.into_iter().zip(held.iter().zip(values)).map(back).collect()
    }
}

/// How an element is held in a register.
struct Held {
    /// NVPTX's name for the kind of register.
    register: &'static str,
    bits: u32,
    /// The element's own bits, where the register is wider; 0: it is not.
    narrow: u32,
    ty: String,
}

impl Held {
    fn of(element: Element) -> Held {
        let (register, bits) = match element {
            Element::F64 => ("d", 64),
            Element::F32 => ("f", 32),
            Element::F16 | Element::Bf16 => ("h", 16),
            Element::Int(64) => ("l", 64),
            Element::Int(32) => ("r", 32),
            Element::Int(_) => ("h", 16),
        };
        let narrow = if element.bits() < bits { element.bits() } else { 0 };
        let ty = if narrow > 0 { format!("i{bits}") } else { element.name() };
        Held { register, bits, narrow, ty }
    }

    fn widened<'c>(&self, b: Builder<'c>, value: Val<'c>) -> Val<'c> {
        if self.narrow == 0 { value } else { b.one("llvm.zext", &[value], b.ty(&self.ty), &[]) }
    }

    fn narrowed<'c>(&self, b: Builder<'c>, value: Val<'c>, element: Element) -> Val<'c> {
        if self.narrow == 0 {
            return value;
        }
        b.one("llvm.trunc", &[value], b.ty(&element.name()), &[])
    }
}

/// The inline assembly: as many results as operands.
fn moved<'c>(
    b: Builder<'c>,
    (text, constraints): (&str, &str),
    values: &[Val<'c>],
    types: &[String],
) -> Vec<Val<'c>> {
    let attributes = [
        ("asm_string", StringAttribute::new(b.context(), text.trim_end()).into()),
        ("constraints", StringAttribute::new(b.context(), constraints).into()),
        ("asm_dialect", b.attr("0 : i64")),
        ("has_side_effects", b.attr("unit")),
        ("operand_attrs", b.attr("[]")),
    ];
    let result: Type<'c> = match types {
        [one] => b.ty(one),
        all => b.ty(&format!("!llvm.struct<({})>", all.join(", "))),
    };
    let whole = b.one("llvm.inline_asm", values, result, &attributes);
    if types.len() == 1 {
        return vec![whole];
    }
    let part = |(i, ty): (usize, &String)| {
        let position = b.attr(&format!("array<i64: {i}>"));
        b.one("llvm.extractvalue", &[whole], b.ty(ty), &[("position", position)])
    };
    types.iter().enumerate().map(part).collect()
}

/// Where a register is, in lane 0 of warp 0, and where lanes and warps are.
fn place(layout: &LinearLayout, register: u32) -> String {
    let bits = layout.register.iter().enumerate();
    let at = bits.filter(|(bit, _)| register >> bit & 1 == 1).fold(0, |at, (_, b)| at ^ b.0);
    let list = |columns: &[Basis]| {
        columns.iter().map(|basis| format!("{:x}", basis.0)).collect::<Vec<_>>().join(",")
    };
    format!(" at={at:x} lane={} warp={}", list(&layout.lane), list(&layout.warp))
}
