//! Loads, stores, atomics and copies: from rows to memory and back.

use super::{
    cta::Cta,
    program::{Address, AtomicStep, CopyStep, MbarrierStep, Slots, Transfer},
    registers::{LANES, Slot, lanes},
    step::{At, extend},
};
use crate::{
    ir::{Mbarrier, Ordering, Scalar, Space},
    memory::{ArriveKind, CtaMemory, Phase, Update, WarpAccess, WarpCopy},
    report::Finding,
};

/// Elements of a vector.
const MOST_VECTOR: usize = 8;
/// Rows of a vector's elements; a 128-bit one has two.
const MOST: usize = 2 * MOST_VECTOR;

impl Cta<'_> {
    fn access<'b>(
        at: At,
        space: Space,
        ordering: Ordering,
        ty: Scalar,
        elements: usize,
        addresses: &'b [u64; LANES],
    ) -> WarpAccess<'b> {
        let (width, count) = match ty.bytes() {
            16 => (8, 2 * elements as u32),
            bytes => (bytes, elements as u32),
        };
        let (pc, warp, mask) = (at.pc, at.warp as u32, at.active);
        WarpAccess { pc, warp, mask, space, ordering, addresses, width, count }
    }

    pub fn load(&mut self, at: At, step: &Transfer) {
        let addresses = self.addresses(at.warp, step.address);
        let access =
            Self::access(at, step.space, step.ordering, step.ty, step.data.len(), &addresses);
        let mut rows = [[0; LANES]; MOST];
        let rows = &mut rows[..access.count as usize];
        self.memory.load(self.context.memory, &access, rows);
        let registers = &mut self.warps[at.warp].registers;
        let bits = u32::from(step.declared);
        let mut row = 0;
        for slot in &step.data {
            match *slot {
                Slot::Word(word) => {
                    let values = rows[row].map(|value| extend(value, step.ty, bits) as u32);
                    registers.set_word(word as usize, &values, at.active);
                }
                Slot::Wide(wide) => {
                    let values = rows[row].map(|value| extend(value, step.ty, bits));
                    registers.set_wide(wide as usize, &values, at.active);
                }
                Slot::Quad(wide) => {
                    registers.set_wide(wide as usize, &rows[row], at.active);
                    registers.set_wide(wide as usize + 1, &rows[row + 1], at.active);
                    row += 1;
                }
                Slot::Flag(_) | Slot::Sink => {}
            }
            row += 1;
        }
    }

    pub fn store(&mut self, at: At, step: &Transfer) {
        let addresses = self.addresses(at.warp, step.address);
        let access =
            Self::access(at, step.space, step.ordering, step.ty, step.data.len(), &addresses);
        let mut rows = [[0; LANES]; MOST];
        let registers = &self.warps[at.warp].registers;
        let mut row = 0;
        for slot in &step.data {
            match *slot {
                Slot::Word(word) => rows[row] = registers.words[word as usize].map(u64::from),
                Slot::Wide(wide) => rows[row] = registers.wides[wide as usize],
                Slot::Quad(wide) => {
                    rows[row] = registers.wides[wide as usize];
                    rows[row + 1] = registers.wides[wide as usize + 1];
                    row += 1;
                }
                Slot::Flag(_) | Slot::Sink => {}
            }
            row += 1;
        }
        let rows = &rows[..access.count as usize];
        self.memory.store(self.context.memory, &access, rows);
    }

    pub fn atomic(&mut self, at: At, step: &AtomicStep) {
        let addresses = self.addresses(at.warp, step.address);
        let elements = step.operand.len();
        let access = Self::access(at, step.space, step.ordering, step.ty, elements, &addresses);
        let registers = &self.warps[at.warp].registers;
        let read = |slots: &Slots| -> [[u64; LANES]; MOST_VECTOR] {
            std::array::from_fn(|element| {
                slots.get(element).map_or([0; LANES], |slot| {
                    std::array::from_fn(|lane| registers.lane(*slot, lane))
                })
            })
        };
        let (operands, news) = (read(&step.operand), read(&step.new));
        let update = Update {
            op: step.op,
            ty: step.ty,
            operands: &operands[..elements],
            news: &news[..step.new.len()],
            result_used: step.dst.iter().any(|slot| *slot != Slot::Sink),
        };
        let mut old = [[0; LANES]; MOST_VECTOR];
        self.memory.atomic(self.context.memory, &access, &update, &mut old[..elements]);
        let registers = &mut self.warps[at.warp].registers;
        for (slot, row) in step.dst.iter().zip(&old) {
            for lane in lanes(at.active) {
                registers.set_lane(*slot, lane, row[lane]);
            }
        }
    }

    pub fn copy(&mut self, at: At, step: &CopyStep) {
        let to = self.addresses(at.warp, step.dst);
        let from = self.addresses(at.warp, step.src);
        let sizes = self.source_sizes(at, step);
        if let Some(lane) = lanes(at.active).find(|&lane| sizes[lane] > step.bytes) {
            let message = format!("source size {} of a {}-byte copy", sizes[lane], step.bytes);
            let site = self.site(at.warp, 1 << lane, at.pc);
            self.find(Finding::BadOperand { at: site, message });
        }
        let sizes = sizes.map(|size| size.min(step.bytes));
        let copy = WarpCopy {
            pc: at.pc,
            warp: at.warp as u32,
            mask: at.active,
            to: &to,
            from: &from,
            space: step.space,
            bytes: step.bytes,
            source_bytes: &sizes,
        };
        self.memory.cp_async(self.context.memory, &copy);
    }

    /// Bytes that each lane of a copy reads; the rest is filled with zeros.
    pub fn source_sizes(&self, at: At, step: &CopyStep) -> [u32; LANES] {
        let registers = &self.warps[at.warp].registers;
        std::array::from_fn(|lane| {
            let ignored = step.ignore.is_some_and(|flag| registers.lane(flag, lane) != 0);
            let given = step.source_bytes.map_or(step.bytes, |s| registers.lane(s, lane) as u32);
            if ignored { 0 } else { given }
        })
    }

    pub fn copy_wait(&mut self, at: At, keep: Option<u32>) {
        self.memory.cp_async_wait(at.warp as u32, at.active, keep);
    }

    pub fn mbarrier(&mut self, at: At, step: &MbarrierStep) {
        let addresses = self.addresses(at.warp, step.address);
        let access = Self::access(at, step.space, step.ordering, Scalar::B64, 1, &addresses);
        let registers = &self.warps[at.warp].registers;
        let operand = |number: usize| -> Option<[u64; LANES]> {
            let slot = *step.operands.get(number)?;
            Some(std::array::from_fn(|lane| registers.lane(slot, lane)))
        };
        let first = operand(0);
        let given = first.unwrap_or([1; LANES]);
        let mut results = [0; LANES];
        match step.op {
            Mbarrier::Init => self.memory.mbarrier_init(&access, &given),
            Mbarrier::Inval => self.memory.mbarrier_inval(&access),
            Mbarrier::Arrive { drop, expect_tx, .. } => {
                let (counts, transactions) =
                    if expect_tx { ([1; LANES], first) } else { (given, None) };
                let kind = ArriveKind { drop };
                self.memory.mbarrier_arrive(
                    &access,
                    &counts,
                    transactions.as_ref(),
                    kind,
                    &mut results,
                );
            }
            Mbarrier::ExpectTx => self.memory.mbarrier_transactions(&access, &given, false),
            Mbarrier::CompleteTx => self.memory.mbarrier_transactions(&access, &given, true),
            Mbarrier::Wait { parity, .. } => {
                let phase = if parity { Phase::Parity(&given) } else { Phase::State(&given) };
                let done = self.memory.mbarrier_wait(&access, phase);
                results = std::array::from_fn(|lane| u64::from(done >> lane & 1));
            }
            Mbarrier::PendingCount => results = given.map(CtaMemory::mbarrier_pending_count),
        }
        let registers = &mut self.warps[at.warp].registers;
        for lane in lanes(at.active) {
            registers.set_lane(step.dst, lane, results[lane]);
        }
    }

    pub fn copy_arrive(&mut self, at: At, step: &Address, noinc: bool) {
        let addresses = self.addresses(at.warp, *step);
        let access = Self::access(at, Space::Shared, Ordering::Weak, Scalar::B64, 1, &addresses);
        self.memory.cp_async_mbarrier_arrive(&access, noinc);
    }
}
