//! Reductions of tiles as Triton lays them out, for tests and measurements of plans.

use bitstable_lowering::encoding;
use bitstable_lowering::layout::{Basis, Dim, LinearLayout, Shape};
use bitstable_lowering::plan::{Operands, Site};

/// One reduction of a tile that was loaded from row-major memory.
#[derive(Clone, Debug)]
pub struct Tile {
    /// The extents of the operands.
    pub extents: Vec<u64>,
    /// The dimension that is reduced.
    pub axis: usize,
    /// The width of each operand in bits.
    pub widths: Vec<u32>,
    /// Whether the combine's operands commute.
    pub operands: Operands,
    /// How many instructions the combine takes.
    pub combine_cost: u32,
    /// Where the results go.
    pub to: To,
}

/// Where the results of a reduction go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// To memory, in the layout that Triton's coalescer stores them in.
    Memory,
    /// To what a loop carries, in the slice of the operand's layout.
    Carried,
}

impl Tile {
    /// A sum of `f32`, stored.
    pub fn sum(extents: &[u64], axis: usize) -> Tile {
        Tile {
            extents: extents.to_vec(),
            axis,
            widths: vec![32],
            operands: Operands::Commute,
            combine_cost: 1,
            to: To::Memory,
        }
    }

    /// The reduction on `warps` warps of `lanes` lanes.
    pub fn site(&self, lanes: u32, warps: u32) -> Site {
        let shape = shape(&self.extents);
        let elements = self.extents.iter().product::<u64>();
        let held = (elements / u64::from(lanes * warps)).max(1);
        let vector = (128 / self.widths[0]).min(held as u32);
        let operand = blocked(&self.extents, vector, lanes, warps);
        let mut rest = self.extents.clone();
        rest.remove(self.axis);
        let result = match self.to {
            _ if rest.is_empty() => scalar(lanes, warps),
            To::Memory => linear(&blocked(&rest, 1, lanes, warps), &rest),
            To::Carried => {
                let slice = format!("#ttg.slice<{{dim = {}, parent = {operand}}}>", self.axis);
                linear(&slice, &rest)
            }
        };
        Site {
            source: encoding::linear_layout(&operand, &shape).expect("a blocked encoding"),
            axis: Dim(self.axis),
            result,
            widths: self.widths.clone(),
            operands: self.operands,
            combine_cost: self.combine_cost,
        }
    }
}

fn shape(extents: &[u64]) -> Shape {
    Shape::from_extents(extents).expect("powers of two")
}

fn linear(encoding: &str, extents: &[u64]) -> LinearLayout {
    encoding::linear_layout(encoding, &shape(extents)).expect("an encoding of Triton")
}

/// A value that every thread has.
fn scalar(lanes: u32, warps: u32) -> LinearLayout {
    let copies = |threads: u32| vec![Basis::ZERO; threads.trailing_zeros() as usize];
    LinearLayout {
        shape: shape(&[]),
        register: Vec::new(),
        lane: copies(lanes),
        warp: copies(warps),
        block: Vec::new(),
    }
}

/// The encoding in which threads stand side by side along memory, each with `vector` elements, as
/// `BlockedEncodingAttr::get` in Triton's `Attributes.td` deals them out.
fn blocked(extents: &[u64], vector: u32, lanes: u32, warps: u32) -> String {
    let rank = extents.len();
    let mut per_thread = vec![1; rank];
    per_thread[rank - 1] = vector.min(extents[rank - 1] as u32);
    let (mut threads, mut across) = (vec![1; rank], vec![1; rank]);
    let (mut lanes, mut warps) = (lanes, warps);
    for dim in (0..rank).rev() {
        let wanted = (extents[dim] as u32 / per_thread[dim]).max(1);
        let outermost = dim == 0;
        threads[dim] = if outermost { lanes } else { wanted.min(lanes) };
        across[dim] = if outermost { warps } else { (wanted / threads[dim]).clamp(1, warps) };
        lanes /= threads[dim];
        warps /= across[dim];
    }
    let order: Vec<usize> = (0..rank).rev().collect();
    format!(
        "#ttg.blocked<{{sizePerThread = {per_thread:?}, threadsPerWarp = {threads:?}, \
         warpsPerCTA = {across:?}, order = {order:?}}}>"
    )
}
