//! The plans of common tiles, as people read them. A change of the planner or of a cost shows
//! here; bless it with `INSTA_UPDATE=always cargo test -p bitstable-lowering --test suite`.

use std::fmt::Write;

use bitstable_lowering::check;
use bitstable_lowering::cost::CostModel;
use bitstable_lowering::encoding;
use bitstable_lowering::layout::{Dim, Shape};
use bitstable_lowering::plan::{Operands, Site};
use bitstable_lowering::planner;

/// A tile as Triton's coalescer lays it out, and the rank-1 layout in which its result is stored.
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
