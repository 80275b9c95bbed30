//! Rows of 32 lanes in and out of the register file, and loops over them.
//!
//! # Idea
//! A scalar function on Rust's own types becomes a [`LaneFn`] by [`lanes!`]: the sources' rows are copied to locals, all 32 lanes are computed, and
//! the lanes of the mask are written. The loop has no branch on the mask, so LLVM vectorises it.
//! # Invariants
//! - **L1** Sources are read before a destination is written: a destination may be a source.
//! - **L2** The scalar function is total: it runs on lanes outside the mask too.
//! - **L3** A [`Value`] narrower than its row is masked on reading and zero-extended on writing
//!   (R1 of the registers).
//! # Held by
//! `ptx/tests/alu/machine.rs`, in place and with mixed masks.

#[cfg(doc)]
use crate::exec::lane::LaneFn;
use crate::exec::registers::{LANES, Mask, Registers, Slot};

/// A row, one value a lane.
pub(super) type Row<T> = [T; LANES];

/// A value as a lane holds it.
pub(super) trait Value: Copy + Default {
    fn load(registers: &Registers, slot: Slot) -> Row<Self>;
    /// Nothing where the slot is [`Slot::Sink`].
    fn store(registers: &mut Registers, slot: Slot, row: &Row<Self>, mask: Mask);
}

macro_rules! word {
    ($($ty:ty),*) => {$(
        impl Value for $ty {
            #[inline(always)]
            fn load(registers: &Registers, slot: Slot) -> Row<Self> {
                let words = &registers.words[slot.row()];
                map(|lane| words[lane] as $ty)
            }
            #[inline(always)]
            fn store(registers: &mut Registers, slot: Slot, row: &Row<Self>, mask: Mask) {
                if slot == Slot::Sink {
                    return;
                }
                registers.set_word(slot.row(), &map(|lane| u32::from(row[lane])), mask);
            }
        }
    )*};
}
word!(u16, u32);

impl Value for u64 {
    #[inline(always)]
    fn load(registers: &Registers, slot: Slot) -> Row<Self> {
        registers.wides[slot.row()]
    }
    #[inline(always)]
    fn store(registers: &mut Registers, slot: Slot, row: &Row<Self>, mask: Mask) {
        if slot != Slot::Sink {
            registers.set_wide(slot.row(), row, mask);
        }
    }
}

impl Value for u128 {
    #[inline(always)]
    fn load(registers: &Registers, slot: Slot) -> Row<Self> {
        let (low, high) = (&registers.wides[slot.row()], &registers.wides[slot.row() + 1]);
        map(|lane| u128::from(low[lane]) | u128::from(high[lane]) << 64)
    }
    #[inline(always)]
    fn store(registers: &mut Registers, slot: Slot, row: &Row<Self>, mask: Mask) {
        if slot == Slot::Sink {
            return;
        }
        registers.set_wide(slot.row(), &map(|lane| row[lane] as u64), mask);
        registers.set_wide(slot.row() + 1, &map(|lane| (row[lane] >> 64) as u64), mask);
    }
}

impl Value for bool {
    #[inline(always)]
    fn load(registers: &Registers, slot: Slot) -> Row<Self> {
        let flags = registers.flags[slot.row()];
        map(|lane| flags & (1 << lane) != 0)
    }
    #[inline(always)]
    fn store(registers: &mut Registers, slot: Slot, row: &Row<Self>, mask: Mask) {
        if slot != Slot::Sink {
            registers.set_flag(slot.row(), gather(row), mask);
        }
    }
}

/// The lanes where a row is true.
#[inline(always)]
pub(super) fn gather(row: &Row<bool>) -> Mask {
    let bits = row.iter().enumerate();
    bits.fold(0, |flags, (lane, &holds)| flags | u32::from(holds) << lane)
}

/// A row, computed lane by lane.
#[inline(always)]
pub(super) fn map<D: Default + Copy>(value: impl Fn(usize) -> D) -> Row<D> {
    let mut row = [D::default(); LANES];
    for (lane, slot) in row.iter_mut().enumerate() {
        *slot = value(lane);
    }
    row
}

/// A [`LaneFn`] that computes an expression in each lane:
/// `lanes!(|a: u32, b: u32| -> u32 { a & b })`. With `payload =>` before it, the expression sees
/// the operands' payload by that name.
macro_rules! lanes {
    ($($payload:ident =>)? |$($source:ident: $ty:ty),*| -> $result:ty $body:block) => {{
        struct Lanes;
        impl $crate::exec::alu::host::Kernel for Lanes {
            #[inline(always)]
            fn run(
                registers: &mut $crate::exec::registers::Registers,
                operands: &$crate::exec::lane::Operands,
                mask: $crate::exec::registers::Mask,
            ) {
                use $crate::exec::alu::rows::{Value, map};
                let ([$($source,)* ..], [dst, ..]) = (&operands.src[..], &operands.dst[..]) else {
                    return;
                };
                $(let $payload = operands.payload;)?
                $(let $source = <$ty>::load(registers, *$source);)*
                let row = map(|lane| -> $result {
                    $(let $source: $ty = $source[lane];)*
                    $body
                });
                <$result>::store(registers, *dst, &row, mask);
            }
        }
        $crate::exec::alu::host::compile::<Lanes>()
    }};
}
pub(super) use lanes;
