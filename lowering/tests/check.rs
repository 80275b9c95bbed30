//! What the checker accepts and refuses, case by case.

use bitstable_lowering::check::{self, Fault};
use bitstable_lowering::layout::{Basis, Dim, LinearLayout, Shape};
use bitstable_lowering::plan::{LaneBit, Operands, Plan, RegisterBit, Site, Step};

/// A row of 32 elements, one a lane, folded to a scalar.
fn row_of_lanes() -> Site {
    let shape = Shape::from_extents(&[32]).expect("a power of two");
    let lane = (0..5).map(|bit| shape.unit(Dim(0), bit)).collect();
    Site {
        source: LinearLayout { shape, register: vec![], lane, warp: vec![], block: vec![] },
        axis: Dim(0),
        result: everywhere(5),
        widths: vec![32],
        operands: Operands::Commute,
        combine_cost: 1,
    }
}

/// A scalar, held by every lane of one warp.
fn everywhere(lanes: usize) -> LinearLayout {
    let shape = Shape::from_extents(&[]).expect("no extents");
    LinearLayout {
        shape,
        register: vec![],
        lane: vec![Basis::ZERO; lanes],
        warp: vec![],
        block: vec![],
    }
}

fn butterflies(order: &[u32]) -> Plan {
    Plan {
        steps: order.iter().map(|&b| Step::Butterfly(LaneBit(b))).collect(),
        gather: vec![0],
        cost: 0,
    }
}

fn permutations(items: &[u32]) -> Vec<Vec<u32>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for (at, &first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(at);
        for mut tail in permutations(&rest) {
            tail.insert(0, first);
            found.push(tail);
        }
    }
    found
}

/// Of the 120 butterfly orders of five lane bits, the checker accepts count-up alone.
#[test]
fn only_count_up_is_canonical() {
    let orders = permutations(&[0, 1, 2, 3, 4]);
    assert_eq!(orders.len(), 120);
    for order in orders {
        let verdict = check::canonical(&row_of_lanes(), &butterflies(&order));
        assert_eq!(verdict.is_ok(), order.is_sorted(), "{order:?}: {verdict:?}");
    }
}

#[test]
fn a_plan_that_ends_early_is_unfinished() {
    let verdict = check::canonical(&row_of_lanes(), &butterflies(&[0, 1, 2]));
    assert_eq!(verdict.unwrap_err().why, Fault::Unfinished(2));
}

#[test]
fn a_plan_that_goes_on_has_nothing_left() {
    let verdict = check::canonical(&row_of_lanes(), &butterflies(&[0, 1, 2, 3, 4, 4]));
    assert_eq!(verdict.unwrap_err().why, Fault::NothingLeft);
}

#[test]
fn bits_that_do_not_exist_are_named() {
    let verdict = check::canonical(&row_of_lanes(), &butterflies(&[7]));
    assert_eq!(verdict.unwrap_err().why, Fault::NoSuchBit { what: "lane", bit: 7 });
    let plan = Plan { steps: vec![Step::FoldRegister(RegisterBit(0))], gather: vec![0], cost: 0 };
    let verdict = check::canonical(&row_of_lanes(), &plan);
    assert_eq!(verdict.unwrap_err().why, Fault::NoSuchBit { what: "register", bit: 0 });
}

/// Lanes 0 and 1 hold elements 0 and 3: the distance is odd, but it is not one.
#[test]
fn a_swizzled_lane_is_not_the_next_bit() {
    let mut site = row_of_lanes();
    site.source.lane[0] = Basis(3);
    let verdict = check::canonical(&site, &butterflies(&[0, 1, 2, 3, 4]));
    let why = Fault::NotTheNextBit { what: "lane", bit: 0, axis: 3, row: 0 };
    assert_eq!(verdict.unwrap_err().why, why);
}

/// Lane bit 1 also moves the axis by one: the values that meet are not always neighbours.
#[test]
fn an_axis_bit_in_two_places_is_refused() {
    let mut site = row_of_lanes();
    site.source.lane[1] = Basis(3);
    let verdict = check::canonical(&site, &butterflies(&[0, 1, 2, 3, 4]));
    assert_eq!(verdict.unwrap_err().why, Fault::SharedAxisBit { what: "lane", bit: 1 });
}

#[test]
fn a_layout_that_misses_elements_is_refused() {
    let mut site = row_of_lanes();
    site.source.lane[4] = Basis::ZERO;
    let verdict = check::canonical(&site, &butterflies(&[0, 1, 2, 3]));
    assert_eq!(verdict.unwrap_err().why, Fault::Incomplete);
}

#[test]
fn relayouts_stay_on_the_machine_and_the_tensor() {
    let site = row_of_lanes();
    let mut other = site.source.clone();
    other.lane.pop();
    other.register.push(Basis(16));
    let plan = Plan { steps: vec![Step::Relayout(other)], gather: vec![0], cost: 0 };
    assert_eq!(check::canonical(&site, &plan).unwrap_err().why, Fault::ForeignLayout);
    let shape = Shape::from_extents(&[64]).expect("a power of two");
    let larger = LinearLayout { shape, register: vec![Basis(32)], ..site.source.clone() };
    let plan = Plan { steps: vec![Step::Relayout(larger)], gather: vec![0], cost: 0 };
    assert_eq!(check::canonical(&site, &plan).unwrap_err().why, Fault::ForeignLayout);
}

#[test]
fn a_gather_names_registers_that_exist_and_hold_the_rows() {
    let site = row_of_lanes();
    let mut plan = butterflies(&[0, 1, 2, 3, 4]);
    plan.gather = vec![1];
    assert_eq!(
        check::canonical(&site, &plan).unwrap_err().why,
        Fault::Gather { got: 1, wanted: 1 }
    );
    plan.gather = vec![];
    assert_eq!(
        check::canonical(&site, &plan).unwrap_err().why,
        Fault::Gather { got: 0, wanted: 1 }
    );
}

/// A result that every lane wants, but that half exchanges left spread over the lanes.
#[test]
fn replicas_are_part_of_the_result() {
    let shape = Shape::from_extents(&[2, 2]).expect("powers of two");
    let site = Site {
        source: LinearLayout {
            register: vec![shape.unit(Dim(0), 0)],
            lane: vec![shape.unit(Dim(1), 0)],
            shape: shape.clone(),
            warp: vec![],
            block: vec![],
        },
        axis: Dim(1),
        result: LinearLayout {
            shape: Shape::from_extents(&[2]).expect("a power of two"),
            register: vec![Basis(1)],
            lane: vec![Basis::ZERO],
            warp: vec![],
            block: vec![],
        },
        widths: vec![32],
        operands: Operands::Commute,
        combine_cost: 1,
    };
    let exchange = Step::HalfExchange { lane: LaneBit(0), register: RegisterBit(0) };
    let plan = Plan { steps: vec![exchange], gather: vec![0, 0], cost: 0 };
    let why = check::canonical(&site, &plan).unwrap_err().why;
    assert_eq!(why, Fault::Misplaced { what: "lane", bit: 0 });
    let plan = Plan { steps: vec![Step::Butterfly(LaneBit(0))], gather: vec![0, 1], cost: 0 };
    assert_eq!(check::canonical(&site, &plan), Ok(()));
}
