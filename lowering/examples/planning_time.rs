//! How long the planner takes for the largest tiles: milliseconds, the median and the worst of
//! repeated runs for each, and the worst of all.
//!
//! Usage: `cargo run --release -p bitstable-lowering --example planning_time [RUNS]`

#[path = "../tests/common/tile.rs"]
mod tile;

use std::{error::Error, hint::black_box, time::Instant};

use bitstable_lowering::{cost::CostModel, plan::Operands, planner};
use tile::{Tile, To};

fn main() -> Result<(), Box<dyn Error>> {
    let runs = std::env::args().nth(1).map_or(Ok(20), |runs| runs.parse::<usize>())?.max(1);
    let targets = [
        ("NVIDIA", 32, CostModel::nvidia()),
        ("gfx942", 64, CostModel::amd_wave64()),
        ("gfx950", 64, CostModel::amd_wave64_swaps()),
        ("wave32", 32, CostModel::amd_wave32()),
    ];
    println!(
        "{:<9}{:<15}{:<6}{:<10}{:<7}{:>10}{:>10}",
        "target", "tile", "axis", "operands", "warps", "median ms", "worst ms"
    );
    let mut worst: f64 = 0.0;
    for (target, lanes, costs) in &targets {
        for tile in tiles() {
            for warps in [1, 2, 4, 8, 16, 32] {
                let site = tile.site(*lanes, warps);
                let mut taken = Vec::with_capacity(runs);
                for _ in 0..runs {
                    let begun = Instant::now();
                    black_box(planner::plan(black_box(&site), costs)?);
                    taken.push(begun.elapsed().as_secs_f64() * 1e3);
                }
                taken.sort_by(f64::total_cmp);
                let (median, last) = (taken[runs / 2], taken[runs - 1]);
                worst = worst.max(last);
                let extents: Vec<String> = tile.extents.iter().map(u64::to_string).collect();
                println!(
                    "{target:<9}{:<15}{:<6}{:<10}{warps:<7}{median:>10.3}{last:>10.3}",
                    extents.join("x"),
                    tile.axis,
                    format!("{:?}", tile.widths),
                );
            }
        }
    }
    println!("worst of all: {worst:.3} ms");
    Ok(())
}

/// Tiles of 131072 elements, reduced along and across memory.
fn tiles() -> Vec<Tile> {
    let shapes: [(&[u64], usize); 9] = [
        (&[131_072], 0),
        (&[1, 131_072], 1),
        (&[16, 8192], 1),
        (&[512, 256], 1),
        (&[4096, 32], 1),
        (&[8192, 16], 0),
        (&[1024, 128], 0),
        (&[32, 4096], 0),
        (&[32, 64, 64], 1),
    ];
    let sums = shapes.into_iter().flat_map(|(extents, axis)| {
        let sum = Tile::sum(extents, axis);
        let argmax = Tile {
            widths: vec![32, 32],
            operands: Operands::Ordered,
            combine_cost: 4,
            ..sum.clone()
        };
        [Tile { widths: vec![16], ..sum.clone() }, argmax, sum]
    });
    let carried = |tile: &Tile| Tile { to: To::Carried, ..tile.clone() };
    sums.flat_map(|tile| [carried(&tile), tile]).collect()
}
