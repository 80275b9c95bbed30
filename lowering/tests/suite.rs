//! The plans of common tiles, as people read them. A change of the planner or of a cost shows
//! here; bless it with `INSTA_UPDATE=always cargo test -p bitstable-lowering --test suite`.

#[path = "common/tile.rs"]
mod tile;

use std::fmt::Write;

use bitstable_lowering::check;
use bitstable_lowering::cost::CostModel;
use bitstable_lowering::encoding;
use bitstable_lowering::layout::{Dim, Shape};
use bitstable_lowering::plan::{Operands, Site};
use bitstable_lowering::planner;

/// A tile whose layout is written out, and the rank-1 layout in which its result is stored.
struct Tile {
    extents: [u64; 2],
    axis: usize,
    per_thread: [u32; 2],
    threads: [u32; 2],
    warps: [u32; 2],
}

impl Tile {
    fn site(&self, operands: Operands) -> Site {
        let [rows, columns] = self.per_thread;
        let [t0, t1] = self.threads;
        let [w0, w1] = self.warps;
        let source = format!(
            "#ttg.blocked<{{sizePerThread = [{rows}, {columns}], threadsPerWarp = [{t0}, {t1}], \
             warpsPerCTA = [{w0}, {w1}], order = [1, 0]}}>"
        );
        let stored = format!(
            "#ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [{}], warpsPerCTA = [{}], \
             order = [0]}}>",
            t0 * t1,
            w0 * w1
        );
        let shape = Shape::from_extents(&self.extents).expect("powers of two");
        let rest = Shape::from_extents(&[self.extents[1 - self.axis]]).expect("a power of two");
        Site {
            source: encoding::linear_layout(&source, &shape).expect("a blocked encoding"),
            axis: Dim(self.axis),
            result: encoding::linear_layout(&stored, &rest).expect("a blocked encoding"),
            widths: vec![32],
            operands,
            combine_cost: 1,
        }
    }
}

fn describe(name: &str, tile: &Tile, costs: &CostModel, operands: Operands) -> String {
    let site = tile.site(operands);
    let plan = planner::plan(&site, costs).expect("one CTA");
    check::canonical(&site, &plan).expect("the planner is right");
    format!("## {name}\n{plan}\n")
}

#[test]
fn plans_of_the_suite() {
    let row =
        |extents, warps| Tile { extents, axis: 1, per_thread: [1, 4], threads: [1, 32], warps };
    let tiles = [
        ("row sum 16x256, 4 warps", row([16, 256], [4, 1])),
        ("row sum 4x1024, 1 warp", row([4, 1024], [1, 1])),
        ("row sum 4x1024, 4 warps", row([4, 1024], [1, 4])),
        ("row sum 4x1024, 8 warps", row([4, 1024], [1, 8])),
        ("row sum 1x8192, 4 warps", row([1, 8192], [1, 4])),
        (
            "column sum 1024x32, 4 warps",
            Tile {
                extents: [1024, 32],
                axis: 0,
                per_thread: [1, 4],
                threads: [4, 8],
                warps: [4, 1],
            },
        ),
        (
            "column sum 64x128, 16 warps",
            Tile {
                extents: [64, 128],
                axis: 0,
                per_thread: [1, 4],
                threads: [1, 32],
                warps: [16, 1],
            },
        ),
    ];
    let mut all = String::new();
    for (name, tile) in &tiles {
        let plan = describe(name, tile, &CostModel::nvidia(), Operands::Commute);
        write!(all, "{plan}").expect("a string takes everything");
    }
    let ordered = describe(
        "row sum 16x256, 4 warps, ordered operands",
        &tiles[0].1,
        &CostModel::nvidia(),
        Operands::Ordered,
    );
    all.push_str(&ordered);
    let wave =
        Tile { extents: [4, 1024], axis: 1, per_thread: [1, 4], threads: [1, 64], warps: [4, 1] };
    all.push_str(&describe(
        "row sum 4x1024, 4 waves of 64",
        &wave,
        &CostModel::amd_wave64(),
        Operands::Commute,
    ));
    insta::assert_snapshot!("plans", all.trim_end());
}

/// The reductions of the cost suite, `benches/cost/suite.py`, each shape once.
fn measured() -> Vec<(&'static str, tile::Tile)> {
    let sum = tile::Tile::sum;
    let half = |tile| tile::Tile { widths: vec![16], ..tile };
    let carried = |tile| tile::Tile { to: tile::To::Carried, ..tile };
    let ordered = |tile, widths: &[u32], combine_cost| tile::Tile {
        widths: widths.to_vec(),
        operands: Operands::Ordered,
        combine_cost,
        ..tile
    };
    vec![
        ("1-D sum 8192", sum(&[8192], 0)),
        ("1-D sum f16 8192", half(sum(&[8192], 0))),
        ("row sum 16x256", sum(&[16, 256], 1)),
        ("row sum 128x32", sum(&[128, 32], 1)),
        ("row sum 2x8192", sum(&[2, 8192], 1)),
        ("row sum f16 16x256", half(sum(&[16, 256], 1))),
        ("short row sum 1024x4", sum(&[1024, 4], 1)),
        ("column sum 1024x4", sum(&[1024, 4], 0)),
        ("column sum 64x128", sum(&[64, 128], 0)),
        ("column sum 8192x2", sum(&[8192, 2], 0)),
        ("column sum f16 128x64", half(sum(&[128, 64], 0))),
        ("short column sum 4x512", sum(&[4, 512], 0)),
        ("middle sum 8x32x16", sum(&[8, 32, 16], 1)),
        ("first sum 16x8x64", sum(&[16, 8, 64], 0)),
        ("argmax 16x256", ordered(sum(&[16, 256], 1), &[32, 32], 4)),
        ("column argmax 128x32", ordered(sum(&[128, 32], 0), &[32, 32], 4)),
        ("Welford 16x256", ordered(sum(&[16, 256], 1), &[32, 32, 32], 10)),
        ("column Welford 128x32", ordered(sum(&[128, 32], 0), &[32, 32, 32], 10)),
        ("looped sum 4x256", carried(sum(&[4, 256], 1))),
        ("looped column sum 32x64", carried(sum(&[32, 64], 0))),
    ]
}

fn measured_plans(target: &str, lanes: u32, costs: &CostModel) {
    let mut all = String::new();
    for (name, tile) in measured() {
        for warps in [1, 4, 8, 32] {
            let site = tile.site(lanes, warps);
            let plan = planner::plan(&site, costs).expect("one CTA");
            check::canonical(&site, &plan).expect("the planner is right");
            writeln!(all, "## {name}, warps {warps}, cost {}\n{plan}", plan.cost)
                .expect("a string");
        }
    }
    insta::assert_snapshot!(target, all.trim_end());
}

#[test]
fn measured_on_nvidia() {
    measured_plans("nvidia", 32, &CostModel::nvidia());
}

#[test]
fn measured_on_gfx942() {
    measured_plans("gfx942", 64, &CostModel::amd_wave64());
}

#[test]
fn measured_on_gfx950() {
    measured_plans("gfx950", 64, &CostModel::amd_wave64_swaps());
}

#[test]
fn measured_on_waves_of_32() {
    measured_plans("wave32", 32, &CostModel::amd_wave32());
}
