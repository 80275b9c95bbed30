//! Renumbering: other names for the elements that the places of a layout hold.
//!
//! # Idea
//! The canonical tree wants the low axis bits in registers, the middle ones in lanes and the high
//! ones in warps. Triton puts the repetitions of a tile, which are registers, on the *high* axis
//! bits. As every layout of a pinned reduction's operand gives the same bits, the repetitions may
//! as well come first: each load still reads whole sectors and vectors, but a thread holds other
//! rows, or another run of its row.
//! # Invariants
//! - **N1** A candidate holds as many elements a thread as the original, and as many of them side
//!   by side in memory: vector width and sectors of a load stay.
//! - **N2** Bits of other dimensions stay where they are.
//! # Held by
//! N1, N2: the tests below.
//! # Not here
//! Whether a candidate is worth it (the planner's cost), and which operations would have to take
//! it along (`passes/src/reduce_layout.rs`).

use crate::encoding::{Blocked, Encoding};
use crate::layout::{Basis, Dim, LinearLayout, Shape};

/// Another encoding for a tensor of `shape` whose `axis` is reduced, as Triton writes it.
///
/// `element_bytes` is the size of the narrowest element that is loaded or stored in this layout,
/// `sector_bytes` what memory transfers at the least. None where nothing would change, or where a
/// request would fetch sectors that it uses in part.
pub fn candidate(
    encoding: &Encoding,
    shape: &Shape,
    axis: Dim,
    element_bytes: u64,
    sector_bytes: u64,
) -> Option<String> {
    let Encoding::Blocked(blocked) = encoding else { return None };
    if blocked.in_cluster() || blocked.order.len() != shape.rank() {
        return None;
    }
    let tile = blocked.size_per_thread.bits(axis)
        + blocked.threads_per_warp.bits(axis)
        + blocked.warps_per_cta.bits(axis);
    let repetitions = shape.bits(axis).checked_sub(tile).filter(|&bits| bits > 0)?;
    if blocked.order[0] == axis {
        let together = sector_bits(blocked, axis, element_bytes, sector_bytes);
        return Some(along_the_axis(blocked, shape, axis, repetitions, together));
    }
    let inner = blocked.order[0];
    let run = blocked.size_per_thread.extent(inner) * blocked.threads_per_warp.extent(inner);
    let whole = run.min(shape.extent(inner)) * element_bytes >= sector_bytes;
    let alone = blocked.threads_per_warp.bits(axis) == 0;
    (whole || alone).then(|| across_the_axis(blocked, axis, repetitions))
}

/// How many lane bits share a sector.
fn sector_bits(blocked: &Blocked, axis: Dim, element_bytes: u64, sector_bytes: u64) -> u32 {
    let vector = blocked.size_per_thread.extent(axis) * element_bytes;
    let lanes = sector_bytes.div_ceil(vector).next_power_of_two().trailing_zeros();
    lanes.min(blocked.threads_per_warp.bits(axis))
}

/// The axis lies across memory: a thread takes neighbouring rows instead of distant ones.
fn across_the_axis(blocked: &Blocked, axis: Dim, repetitions: u32) -> String {
    let mut sizes = blocked.size_per_thread.extents();
    sizes[axis.0] <<= repetitions;
    let mut renamed = blocked.clone();
    renamed.size_per_thread = Shape::from_extents(&sizes).expect("below the tensor's own extents");
    renamed.to_string()
}

/// The axis lies along memory: the lanes that share a sector stay together, then come the
/// repetitions, then the other lanes and the warps.
fn along_the_axis(
    blocked: &Blocked,
    shape: &Shape,
    axis: Dim,
    repetitions: u32,
    together: u32,
) -> String {
    let layout = Encoding::Blocked(blocked.clone())
        .to_linear(shape)
        .expect("a blocked encoding of the tensor's own rank");
    let first = blocked.size_per_thread.bits(axis) + together;
    let high = shape.bits(axis) - repetitions;
    // Bits [first, high) move up to make room; bits [high, end) move down to `first`.
    let moved = |bit: u32| match bit {
        b if b < first => b,
        b if b < high => b + repetitions,
        b => b - (high - first),
    };
    let rename = |basis: &Basis| {
        let bits = shape.bits(axis);
        let offset = shape.offset(axis);
        let along = ((1u64 << bits) - 1) << offset;
        let renamed = (0..bits)
            .filter(|bit| basis.0 >> (offset + bit) & 1 == 1)
            .fold(0, |sum, bit| sum | 1 << (offset + moved(bit)));
        Basis(basis.0 & !along | renamed)
    };
    let columns = |bases: &[Basis]| bases.iter().map(rename).collect();
    let renamed = LinearLayout {
        shape: shape.clone(),
        register: columns(&layout.register),
        lane: columns(&layout.lane),
        warp: columns(&layout.warp),
        block: layout.block.clone(),
    };
    renamed.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding;

    fn blocked(size: [u32; 2], threads: [u32; 2], warps: [u32; 2]) -> Encoding {
        let text = format!(
            "#ttg.blocked<{{sizePerThread = {size:?}, threadsPerWarp = {threads:?}, \
             warpsPerCTA = {warps:?}, order = [1, 0]}}>"
        );
        encoding::parse(&text).expect("a blocked encoding")
    }

    fn shape(extents: [u64; 2]) -> Shape {
        Shape::from_extents(&extents).expect("powers of two")
    }

    #[test]
    fn a_column_sum_gives_a_thread_neighbouring_rows() {
        let tile = blocked([1, 4], [4, 8], [4, 1]);
        let found = candidate(&tile, &shape([1024, 32]), Dim(0), 4, 32);
        let wanted = "#ttg.blocked<{sizePerThread = [64, 4], threadsPerWarp = [4, 8], \
                      warpsPerCTA = [4, 1], order = [1, 0]}>";
        assert_eq!(found.as_deref(), Some(wanted));
    }

    #[test]
    fn a_row_sum_keeps_vectors_and_sectors() {
        let tile = blocked([1, 4], [1, 32], [1, 4]);
        let shape = shape([1, 8192]);
        let found = candidate(&tile, &shape, Dim(1), 4, 32).expect("it repeats 16 times");
        let layout = encoding::linear_layout(&found, &shape).expect("a linear encoding");
        let along = |bits: &[u32]| bits.iter().map(|&b| shape.unit(Dim(1), b)).collect::<Vec<_>>();
        // Four floats a thread and two threads a sector as before; then 16 sectors a thread.
        assert_eq!(layout.register, along(&[0, 1, 3, 4, 5, 6]));
        assert_eq!(layout.lane, along(&[2, 7, 8, 9, 10]));
        assert_eq!(layout.warp, along(&[11, 12]));
    }

    #[test]
    fn what_does_not_repeat_is_left_alone() {
        let tile = blocked([1, 4], [1, 32], [4, 1]);
        assert_eq!(candidate(&tile, &shape([16, 128]), Dim(1), 4, 32), None);
        assert_eq!(candidate(&tile, &shape([4, 128]), Dim(0), 4, 32), None);
    }

    #[test]
    fn a_request_must_not_split_sectors() {
        // Rows of four halves, eight bytes: lanes that hold distant rows would waste 24 of 32.
        let tile = blocked([1, 4], [32, 1], [1, 1]);
        assert_eq!(candidate(&tile, &shape([1024, 4]), Dim(0), 2, 32), None);
        let whole = candidate(&tile, &shape([1024, 4]), Dim(0), 8, 32);
        assert!(whole.is_some_and(|text| text.contains("sizePerThread = [32, 4]")));
    }
}
