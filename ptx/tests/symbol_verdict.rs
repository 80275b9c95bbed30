//! Verdicts on hand-built trees: every combine, every size, and departures by name.

mod symbol_trees;

use bitstable_ptx::{
    ir::{FloatBinary, Scalar},
    symbol::{
        Expect, Graph, NodeId, Verdict, analyse, explain, judge,
        print::Names,
        verdict::{Canonical, Padding, reductions},
    },
};
use proptest::prelude::*;
use symbol_trees::*;

fn say(graph: &Graph, root: NodeId, extent: Option<u64>) -> String {
    explain(graph, &analyse(graph, root, Expect { extent }), named())
}

fn canonical(graph: &Graph, root: NodeId, extent: u64) -> Canonical {
    match judge(graph, root, Expect { extent: Some(extent) }) {
        Verdict::Canonical(found) => found,
        Verdict::Departs(_) | Verdict::Unknown(_) => panic!("{}", say(graph, root, Some(extent))),
    }
}

#[test]
fn count_up_trees_are_canonical_for_every_combine() {
    for op in combines() {
        for bits in 1..=6 {
            let mut trees = Trees::new();
            let leaves = trees.row(1 << bits);
            let root = trees.count_up(op, &leaves);
            let found = canonical(&trees.graph, root, 1 << bits);
            assert_eq!((found.elements, found.swapped, found.padding), (1 << bits, false, None));
            assert!(matches!(judge(&trees.graph, root, Expect::default()), Verdict::Canonical(_)));
        }
    }
}

#[test]
fn butterflies_in_the_wrong_order_are_named() {
    let mut trees = Trees::new();
    let x = trees.row(8);
    let low: Vec<NodeId> = (0..4).map(|k| trees.join(FloatBinary::Add, x[k], x[k + 4])).collect();
    let root = trees.count_up(FloatBinary::Add, &low);
    assert_eq!(
        say(&trees.graph, root, None),
        "not canonical: at leaves [0, 2), add.rn.f32 joins x[0] and x[4]; canonical is x[0] and x[1]"
    );
}

#[test]
fn a_chain_is_named() {
    let mut trees = Trees::new();
    let x = trees.row(4);
    let root = x[1..].iter().fold(x[0], |sum, leaf| trees.join(FloatBinary::Add, sum, *leaf));
    assert_eq!(
        say(&trees.graph, root, None),
        "not canonical: at leaves [0, 4), add.rn.f32 joins leaves [0, 2) and x[2]; canonical is \
         leaves [0, 2) and leaves [2, 4)"
    );
}

#[test]
fn swapped_operands_are_said_and_matter_where_nothing_commutes() {
    let mut trees = Trees::new();
    let x = trees.row(2);
    let sum = trees.join(FloatBinary::Add, x[1], x[0]);
    assert!(canonical(&trees.graph, sum, 2).swapped);
    let difference = trees.join(FloatBinary::Sub, x[1], x[0]);
    assert_eq!(
        say(&trees.graph, difference, None),
        "not canonical: x[1] - x[0] has the higher elements on its left, and sub.rn.f32 does not \
         commute"
    );
}

#[test]
fn padding_is_allowed_at_the_end_and_said() {
    let mut trees = Trees::new();
    let mut leaves = trees.row(5);
    let zero = trees.number(0x8000_0000);
    leaves.push(zero);
    let fours: Vec<NodeId> =
        (0..3).map(|k| trees.join(FloatBinary::Add, leaves[2 * k], leaves[2 * k + 1])).collect();
    let low = trees.join(FloatBinary::Add, fours[0], fours[1]);
    let high = trees.join(FloatBinary::Add, fours[2], zero);
    let root = trees.join(FloatBinary::Add, low, high);
    let found = canonical(&trees.graph, root, 8);
    assert_eq!(found.elements, 5);
    assert!(matches!(found.padding, Some(Padding::Identity(_))));

    let front = trees.join(FloatBinary::Add, zero, leaves[0]);
    let root = trees.join(FloatBinary::Add, front, leaves[1]);
    assert_eq!(
        say(&trees.graph, root, None),
        "not canonical: add.rn.f32 joins the number -0.0 and x[0]; padding belongs behind the last \
         element"
    );
    let three = trees.number(3.0f32.to_bits());
    let high = trees.join(FloatBinary::Add, leaves[2], three);
    let low = trees.join(FloatBinary::Add, leaves[0], leaves[1]);
    let root = trees.join(FloatBinary::Add, low, high);
    assert_eq!(
        say(&trees.graph, root, None),
        "not canonical: add.rn.f32 joins the number 3.0 and x[2]"
    );
}

#[test]
fn an_accumulator_that_begins_with_zero_is_padding() {
    let mut trees = Trees::new();
    let leaves = trees.row(8);
    let sum = trees.count_up(FloatBinary::Add, &leaves);
    let zero = trees.number(0);
    let root = trees.join(FloatBinary::Add, zero, sum);
    let found = canonical(&trees.graph, root, 8);
    assert!(found.swapped && found.elements == 8);
    assert!(say(&trees.graph, root, None).contains("can move a zero total's sign"));
}

#[test]
fn leaves_are_expressions_of_one_shape() {
    let mut trees = Trees::new();
    let (x, y) = (trees.row(8), trees.elements(1, 8, 32));
    let products: Vec<NodeId> = (0..8).map(|k| trees.join(FloatBinary::Mul, x[k], y[k])).collect();
    let root = trees.count_up(FloatBinary::Add, &products);
    canonical(&trees.graph, root, 8);

    // A maximum of the row below every leaf is shared, not walked.
    let max = trees.count_up(FloatBinary::Max, &x);
    let shifted: Vec<NodeId> =
        x.iter().map(|leaf| trees.join(FloatBinary::Sub, *leaf, max)).collect();
    let root = trees.count_up(FloatBinary::Add, &shifted);
    canonical(&trees.graph, root, 8);
    assert_eq!(reductions(&trees.graph, root), [root, max]);

    let fused = trees.fma(x[1], y[1], products[0]);
    let root = trees.join(FloatBinary::Add, fused, products[2]);
    let text = say(&trees.graph, root, None);
    assert!(text.contains("a product was fused"), "{text}");
}

/// `exp(x[i] - max)`, where each lane holds the maximum as its own butterfly left it.
#[test]
fn leaves_may_hold_one_value_with_its_operands_swapped() {
    let mut trees = Trees::new();
    let x = trees.row(8);
    let mut lanes = x.clone();
    for bit in [4, 2, 1] {
        let exchanged: Vec<NodeId> = (0..8).map(|lane| lanes[lane ^ bit]).collect();
        lanes =
            (0..8).map(|lane| trees.join(FloatBinary::Max, lanes[lane], exchanged[lane])).collect();
    }
    assert_ne!(lanes[0], lanes[1]);
    assert!(lanes.iter().all(|lane| trees.graph.class(*lane) == trees.graph.class(lanes[0])));
    let leaves: Vec<NodeId> =
        (0..8).map(|lane| trees.join(FloatBinary::Sub, x[lane], lanes[lane])).collect();
    let root = trees.count_up(FloatBinary::Add, &leaves);
    assert_eq!(canonical(&trees.graph, root, 8).elements, 8);
    // Operands that do not commute keep their order.
    let [a, b] = [[0, 1], [1, 0]].map(|[a, b]| trees.join(FloatBinary::Sub, x[a], x[b]));
    assert_ne!(trees.graph.class(a), trees.graph.class(b));
}

#[test]
fn sums_of_two_buffers_need_the_extent() {
    let mut trees = Trees::new();
    let (x, y) = (trees.row(4), trees.elements(1, 4, 4));
    let pairs: Vec<NodeId> = (0..4).map(|k| trees.join(FloatBinary::Add, x[k], y[k])).collect();
    let root = trees.count_up(FloatBinary::Add, &pairs);
    canonical(&trees.graph, root, 4);
    assert!(!matches!(judge(&trees.graph, root, Expect::default()), Verdict::Canonical(_)));
}

#[test]
fn what_is_wrong_with_leaves_is_said() {
    let mut trees = Trees::new();
    let x = trees.row(8);
    let twice = trees.count_up(FloatBinary::Add, &[x[0], x[1], x[1], x[2]]);
    assert_eq!(say(&trees.graph, twice, None), "not canonical: the leaf x[1] is used twice");
    let gap = trees.count_up(FloatBinary::Add, &[x[0], x[1], x[2], x[5]]);
    assert_eq!(
        say(&trees.graph, gap, None),
        "not canonical: leaves are not one step apart: x[2] is followed by x[5]"
    );
    let half = trees.count_up(FloatBinary::Add, &x[..4]);
    assert_eq!(
        say(&trees.graph, half, Some(8)),
        "not canonical: 4 elements in a tree over 4, where the axis has 8"
    );
    let fused = trees.fma(x[0], x[1], x[2]);
    assert_eq!(
        say(&trees.graph, fused, None),
        "not canonical: the operation at the top, fma.rn.f32(x[0], x[1], x[2]), does not join two \
         sides: a product was fused into the reduction"
    );
}

#[test]
fn scaling_and_conversion_above_the_tree_are_looked_through() {
    let mut trees = Trees::new();
    let leaves = trees.row(8);
    let sum = trees.count_up(FloatBinary::Add, &leaves);
    let eighth = trees.number(0.125f32.to_bits());
    let mean = trees.join(FloatBinary::Mul, sum, eighth);
    assert_eq!(canonical(&trees.graph, mean, 8).elements, 8);
    assert_eq!(analyse(&trees.graph, mean, Expect::default()).above.0, [mean]);
}

#[test]
fn argmax_is_a_choice_that_reads_its_sides() {
    let mut trees = Trees::new();
    let x = trees.row(4);
    let mut level: Vec<(NodeId, NodeId)> =
        x.iter().enumerate().map(|(k, leaf)| (*leaf, trees.index(k as u64))).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| trees.argmax(pair[0], pair[1])).collect();
    }
    let found = canonical(&trees.graph, level[0].0, 4);
    assert!(found.chooses && found.elements == 4);
    let text = say(&trees.graph, level[0].1, Some(4));
    assert!(text.starts_with("unknown: the value is chosen together"), "{text}");

    let other = trees.greater(x[0], x[1]);
    let root = trees.choose(other, x[2], x[3]);
    let text = say(&trees.graph, root, None);
    assert!(text.contains("on neither of its sides"), "{text}");
}

#[test]
fn shared_nodes_that_unfold_without_end_have_no_verdict() {
    let mut trees = Trees::new();
    let mut node = trees.row(1)[0];
    for _ in 0..64 {
        node = trees.join(FloatBinary::Add, node, node);
    }
    assert!(matches!(judge(&trees.graph, node, Expect::default()), Verdict::Unknown(_)));
    let long = trees.row(100_000);
    let chain =
        long[1..].iter().fold(long[0], |sum, leaf| trees.join(FloatBinary::Add, sum, *leaf));
    assert!(matches!(judge(&trees.graph, chain, Expect::default()), Verdict::Departs(_)));
    assert!(
        explain(&trees.graph, &analyse(&trees.graph, chain, Expect::default()), Names::plain())
            .contains("joins leaves [0, 2)")
    );
}

/// Of all orders in which three axis bits can be folded, count-up alone is canonical.
#[test]
fn only_count_up_is_canonical() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut trees = Trees::new();
        let mut level: Vec<Option<NodeId>> = trees.row(8).into_iter().map(Some).collect();
        for bit in order {
            for k in 0..8 {
                if k >> bit & 1 == 0
                    && let (Some(a), Some(b)) = (level[k], level[k | 1 << bit])
                {
                    level[k] = Some(trees.join(FloatBinary::Add, a, b));
                    level[k | 1 << bit] = None;
                }
            }
        }
        let root = level[0].expect("folded to one");
        let verdict = judge(&trees.graph, root, Expect { extent: Some(8) });
        assert_eq!(matches!(verdict, Verdict::Canonical(_)), order.is_sorted(), "{order:?}");
    }
}

proptest! {
    /// Joining neighbours in any order other than the canonical one is found out.
    #[test]
    fn a_random_tree_is_canonical_only_if_it_is_the_canonical_one(
        picks in prop::collection::vec(any::<prop::sample::Index>(), 7),
        flips in any::<u8>(),
    ) {
        let mut trees = Trees::new();
        let leaves = trees.row(8);
        let right = trees.count_up(FloatBinary::Add, &leaves);
        let mut rest = leaves;
        let mut flipped = false;
        for (k, pick) in picks.iter().enumerate() {
            let at = pick.index(rest.len() - 1);
            let (mut a, mut b) = (rest[at], rest.remove(at + 1));
            if flips >> k & 1 == 1 {
                (a, b, flipped) = (b, a, true);
            }
            rest[at] = trees.join(FloatBinary::Add, a, b);
        }
        let found = judge(&trees.graph, rest[0], Expect { extent: Some(8) });
        let same = bitstable_ptx::symbol::Digests::default().of(&trees.graph, rest[0]).map(|d| d.tree)
            == bitstable_ptx::symbol::Digests::default().of(&trees.graph, right).map(|d| d.tree);
        if let Verdict::Canonical(canonical) = &found {
            prop_assert!(same);
            prop_assert_eq!(canonical.swapped, flipped);
        } else {
            prop_assert!(!same);
        }
    }
}

#[test]
fn bf16_sums_are_one_tree_on_every_target() {
    let mut trees = Trees::new();
    let x = trees.typed(0, 2, 2, Scalar::BF16);
    let direct = trees.typed_join(FloatBinary::Add, x[0], x[1], Scalar::BF16);
    let one = trees.typed_number(0x3F80, Scalar::BF16);
    let fused = trees.typed_fma([x[0], one, x[1]], Scalar::BF16);
    assert_eq!(direct, fused);
    let wide =
        x.iter().map(|leaf| trees.convert(*leaf, Scalar::F32, Scalar::BF16)).collect::<Vec<_>>();
    let sum = trees.join(FloatBinary::Add, wide[0], wide[1]);
    let rounded = trees.convert(sum, Scalar::BF16, Scalar::F32);
    assert_eq!(direct, rounded);
}
