//! Random sites.

use bitstable_lowering::layout::{Dim, LinearLayout, Shape};
use bitstable_lowering::plan::{Operands, Site};
use proptest::prelude::*;

/// A random distribution of a tensor's bits over registers, lanes and warps.
fn layout(shape: Shape, lanes: usize, warps: usize) -> impl Strategy<Value = LinearLayout> {
    let bits: Vec<_> = (0..shape.rank())
        .map(Dim)
        .flat_map(|d| (0..shape.bits(d)).map(move |bit| (d, bit)))
        .map(|(d, bit)| shape.unit(d, bit))
        .collect();
    let threads = lanes + warps;
    // Pad with broadcasts so that any place bit may be one.
    let mut pool = bits.clone();
    pool.resize(bits.len() + threads + 1, Default::default());
    Just(pool).prop_shuffle().prop_map(move |mut pool| {
        let lane = pool.split_off(pool.len() - lanes);
        let warp = pool.split_off(pool.len() - warps);
        LinearLayout { shape: shape.clone(), register: pool, lane, warp, block: Vec::new() }
    })
}

/// A random site: a tensor of rank 1 to 3 of up to `2^elements` elements on a machine of up to
/// `2^lanes` lanes and `2^warps` warps, its result wanted anywhere.
pub fn sites(elements: u32, lanes: usize, warps: usize) -> impl Strategy<Value = Site> {
    let shape = prop::collection::vec(0u32..=5, 1..=3)
        .prop_filter("more elements than asked for", move |bits| {
            bits.iter().sum::<u32>() <= elements
        });
    (shape, 0usize..3, 0..=lanes, 0..=warps, any::<bool>(), any::<bool>()).prop_flat_map(
        |(bits, axis, lanes, warps, commute, tuple)| {
            let extents: Vec<u64> = bits.iter().map(|b| 1 << b).collect();
            let axis = Dim(axis % extents.len());
            let mut rest = extents.clone();
            rest.remove(axis.0);
            let shape = Shape::from_extents(&extents).expect("powers of two");
            let rest = Shape::from_extents(&rest).expect("powers of two");
            (layout(shape, lanes, warps), layout(rest, lanes, warps)).prop_map(
                move |(source, result)| Site {
                    source,
                    axis,
                    result,
                    widths: if tuple { vec![32, 16] } else { vec![32] },
                    operands: if commute { Operands::Commute } else { Operands::Ordered },
                    combine_cost: 1,
                },
            )
        },
    )
}
