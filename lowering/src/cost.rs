//! What a step costs on a target: the numbers that the planner minimises.
//!
//! # Idea
//! One unit is one issue slot of one warp: an instruction that every lane can start each cycle
//! costs 1. Slower instructions cost how many such slots their unit is busy. The numbers choose
//! between right plans; they never decide whether a plan is right.
//! # Sources
//! - NVIDIA: CUDA C++ Programming Guide, "Arithmetic Instructions", throughput per SM and cycle
//!   on compute capability 8.0 and 9.0: 32-bit add 64 and 128, select and logic 64, warp shuffle
//!   32; shared memory 32 banks of 4 bytes a cycle, so a 128-bit access takes four passes.
//! - AMD: CDNA 3 and RDNA 4 ISA guides: a DPP operand is read on the way into the vector unit and
//!   costs no instruction of its own; `ds_swizzle` and `ds_bpermute` go through the LDS unit.
//! - A shuffle's result comes after 24 cycles, that of AMD's LDS after 64 (CDNA 3 ISA guide). A
//!   latency is priced by the slots that nobody else fills: the more warps, the fewer.
//! - A barrier and the latency behind it are priced by what they keep from issuing in a kernel of
//!   four warps, measured on compiled sums of rows and columns.
//! # Not here
//! Which plans there are (`planner.rs`).

use crate::plan::LaneBit;

/// A way from lane to lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The price of each 32-bit word.
    pub word: u32,
    /// Cycles until the first arrives, however many there are.
    latency: u32,
}

impl Exchange {
    /// The price of the latency in a kernel of `warps` warps.
    pub fn wait(self, warps: u32) -> u32 {
        self.latency / (warps + 1)
    }
}

/// `v_add_f32_dpp` and its like: two wait states, and no instruction of its own.
const DPP: Exchange = Exchange { word: 0, latency: 8 };
/// A DPP move that is no part of the combine.
const MOVE: Exchange = Exchange { word: 1, latency: 8 };
/// `ds_swizzle` and `ds_bpermute`.
const LDS: Exchange = Exchange { word: 4, latency: 64 };
const SHUFFLE: Exchange = Exchange { word: 2, latency: 24 };

/// The costs of one target, in issue slots of a warp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CostModel {
    /// Moving one 32-bit word to lane `l ^ (1 << bit)`, indexed by bit.
    exchange: Vec<Exchange>,
    /// The same in a butterfly where the lanes of all lower bits hold one value already: the
    /// target may fold neighbours in one of them, and needs the result in all at the end alone.
    fold: Vec<Exchange>,
    /// The lane bits whose two lanes can trade halves of two registers in one instruction.
    swaps: Vec<LaneBit>,
    /// Choosing between two words by a lane's own bit.
    pub select: u32,
    /// Putting two narrow values into one word, or taking one out.
    pub pack: u32,
    /// One evaluation of a one-instruction combine.
    pub combine: u32,
    /// An instruction that stores to shared memory or loads from it, beside its wavefronts.
    pub access: u32,
    /// One pass of a warp through the banks of shared memory.
    pub wavefront: u32,
    /// One shift and mask of an address.
    pub shift: u32,
    /// One barrier between a store and a load, with the wait that it implies.
    pub barrier: u32,
}

impl CostModel {
    /// Every NVIDIA target that Triton 3.9 compiles for.
    pub fn nvidia() -> CostModel {
        CostModel {
            exchange: vec![SHUFFLE; 5],
            fold: vec![SHUFFLE; 5],
            swaps: Vec::new(),
            select: 1,
            pack: 1,
            combine: 1,
            access: 1,
            wavefront: 2,
            shift: 2,
            barrier: 24,
        }
    }

    /// AMD targets whose waves have 64 lanes: DPP within a row of 16 lanes, LDS across rows.
    pub fn amd_wave64() -> CostModel {
        CostModel {
            exchange: vec![DPP, DPP, MOVE, DPP, LDS, LDS],
            fold: vec![DPP, DPP, DPP, DPP, DPP, MOVE],
            ..CostModel::amd()
        }
    }

    /// gfx950: as other waves of 64 lanes, and rows and halves trade registers.
    pub fn amd_wave64_swaps() -> CostModel {
        CostModel {
            exchange: vec![DPP, DPP, MOVE, DPP, MOVE, MOVE],
            fold: vec![DPP, DPP, DPP, DPP, DPP, MOVE],
            swaps: vec![LaneBit(4), LaneBit(5)],
            ..CostModel::amd()
        }
    }

    /// AMD targets whose waves have 32 lanes: DPP within a row, `v_permlanex16` across.
    pub fn amd_wave32() -> CostModel {
        let exchange = vec![DPP, DPP, DPP, DPP, MOVE];
        CostModel { fold: exchange.clone(), exchange, ..CostModel::amd() }
    }

    fn amd() -> CostModel {
        CostModel {
            exchange: Vec::new(),
            fold: Vec::new(),
            swaps: Vec::new(),
            select: 1,
            pack: 1,
            combine: 1,
            access: 2,
            wavefront: 1,
            shift: 2,
            barrier: 36,
        }
    }

    /// Whether a half exchange across `bit` is one instruction, with nothing to select.
    pub fn swaps(&self, bit: LaneBit) -> bool {
        self.swaps.contains(&bit)
    }

    /// A way across `bit`; `folded` says that all lanes of lower bits hold the same.
    ///
    /// # Panics
    /// When the target's waves have no such lane bit.
    pub fn exchange(&self, bit: LaneBit, folded: bool) -> Exchange {
        let ways = if folded { &self.fold } else { &self.exchange };
        ways[bit.0 as usize]
    }
}

/// How many 32-bit words carry `values` values of `width` bits: narrow ones share a word, wide
/// ones take several.
pub fn words(values: usize, width: u32) -> u32 {
    let values = values as u32;
    if width >= 32 { values * width.div_ceil(32) } else { (values * width.max(8)).div_ceil(32) }
}
