//! Plans in words: each kind of step, several operands, and layouts that are no permutations.

#[path = "common/tile.rs"]
mod tile;

use bitstable_lowering::cost::CostModel;
use bitstable_lowering::explain::explain;
use bitstable_lowering::plan::{Operands, Site};
use bitstable_lowering::planner;
use tile::{Tile, To};

fn told(name: &str, site: &Site, costs: &CostModel) -> String {
    let plan = planner::plan(site, costs).expect("one CTA");
    format!("## {name}\n{}\n\n", explain(site, costs, &plan).join("\n"))
}

#[test]
fn plans_are_told() {
    let sum = |extents: &[u64], axis| Tile::sum(extents, axis);
    let nvidia = CostModel::nvidia();
    let argmax = Tile {
        widths: vec![32, 64],
        operands: Operands::Ordered,
        combine_cost: 4,
        ..sum(&[16, 256], 1)
    };
    let mut all = told("row sum 16x256, 4 warps", &sum(&[16, 256], 1).site(32, 4), &nvidia);
    all += &told("row argmax 16x256, 4 warps", &argmax.site(32, 4), &nvidia);
    let carried = Tile { to: To::Carried, ..sum(&[128, 32], 0) };
    all += &told("looped column sum 128x32, 1 warp", &carried.site(32, 1), &nvidia);
    let wave = sum(&[4, 1024], 1).site(64, 4);
    all += &told("row sum 4x1024, 4 waves, gfx950", &wave, &CostModel::amd_wave64_swaps());
    let mut mixed = sum(&[8, 8], 1).site(32, 1);
    mixed.source.lane[0].0 |= mixed.source.lane[1].0;
    all += &told("row sum 8x8 of mixed lanes", &mixed, &nvidia);
    insta::assert_snapshot!("explained", all.trim_end());
}
