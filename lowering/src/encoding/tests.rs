//! Literal layouts, all of them printed by Triton 3.9.0, and what holds for every text and shape.

use super::{EncodingError, NESTING, linear_layout, parse};
use crate::layout::{Basis, LinearLayout, Shape};
use proptest::prelude::*;
use std::collections::BTreeSet;

const BLOCKED: &str = "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], \
                       warpsPerCTA = [2, 2], order = [1, 0]}>";

fn shape(extents: &[u64]) -> Shape {
    Shape::from_extents(extents).expect("powers of two")
}

fn answer(text: &str, extents: &[u64]) -> String {
    match linear_layout(text, &shape(extents)) {
        Ok(layout) => layout.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

fn blocked(size: &str, threads: &str, warps: &str, order: &str, more: &str) -> String {
    format!(
        "#ttg.blocked<{{sizePerThread = {size}, threadsPerWarp = {threads}, \
         warpsPerCTA = {warps}, order = {order}{more}}}>"
    )
}

#[test]
fn repetitions_become_the_high_registers() {
    let text = blocked("[1, 4]", "[2, 16]", "[4, 1]", "[1, 0]", "");
    assert_eq!(
        answer(&text, &[16, 256]),
        "#ttg.linear<{register = [[0, 1], [0, 2], [0, 64], [0, 128], [8, 0]], \
         lane = [[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = [[2, 0], [4, 0]], block = []}>"
    );
}

#[test]
fn registers_outside_the_tensor_are_dropped_and_lanes_are_broadcast() {
    let text = blocked("[2, 1, 1, 4]", "[2, 1, 4, 4]", "[1, 1, 4, 1]", "[2, 3, 1, 0]", "");
    assert_eq!(
        answer(&text, &[8, 4, 1, 1]),
        "#ttg.linear<{register = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0], [4, 0, 0, 0]], \
         lane = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0]], \
         warp = [[0, 0, 0, 0], [0, 0, 0, 0]], block = []}>"
    );
}

#[test]
fn ctas_take_the_high_bits_in_their_own_order() {
    let text = blocked("[1, 2]", "[4, 8]", "[2, 2]", "[1, 0]", ", CGALayout = [[0, 2], [0, 1]]");
    assert_eq!(
        answer(&text, &[16, 64]),
        "#ttg.linear<{register = [[0, 1], [8, 0]], \
         lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[0, 0], [4, 0]], \
         block = [[0, 32], [0, 16]]}>"
    );
    assert_eq!(
        answer(&text, &[16, 2]),
        "#ttg.linear<{register = [[8, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], \
         warp = [[0, 0], [4, 0]], block = [[0, 0], [0, 1]]}>"
    );
}

#[test]
fn a_slice_broadcasts_the_lanes_that_it_lost() {
    let parent = blocked("[1, 4]", "[2, 16]", "[4, 1]", "[1, 0]", ", CGALayout = [[0, 1], [1, 0]]");
    assert_eq!(
        answer(&format!("#ttg.slice<{{dim = 0, parent = {parent}}}>"), &[256]),
        "#ttg.linear<{register = [[1], [2], [64]], lane = [[4], [8], [16], [32], [0]], \
         warp = [[0], [0]], block = [[128], [0]]}>"
    );
}

#[test]
fn a_linear_encoding_repeats_above_its_blocks() {
    let text = "#ttg.linear<{register = [[4]], lane = [[1], [2]], warp = [], block = [[8]]}>";
    assert_eq!(
        answer(text, &[64]),
        "#ttg.linear<{register = [[4], [16], [32]], lane = [[1], [2]], warp = [], block = [[8]]}>"
    );
    assert_eq!(
        answer(text, &[4]),
        "#ttg.linear<{register = [], lane = [[1], [2]], warp = [], block = [[0]]}>"
    );
}

#[test]
fn a_linear_encoding_repeats_first_where_its_registers_move_first() {
    let text = "#ttg.linear<{register = [[1, 0]], lane = [[0, 1], [0, 2]], warp = [], block = []}>";
    assert_eq!(
        answer(text, &[4, 8]),
        "#ttg.linear<{register = [[1, 0], [2, 0], [0, 4]], lane = [[0, 1], [0, 2]], warp = [], \
         block = []}>"
    );
}

const MMA: &str = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>";

#[test]
fn registers_of_matrix_units_are_broadcast() {
    assert_eq!(
        answer(MMA, &[8, 4]),
        "#ttg.linear<{register = [[0, 1], [0, 0]], lane = [[0, 2], [0, 0], [1, 0], [2, 0], [4, 0]], \
         warp = [[0, 0], [0, 0]], block = []}>"
    );
}

#[test]
fn warps_share_what_the_product_sums_over() {
    let operand = |index| format!("#ttg.dot_op<{{opIdx = {index}, parent = {MMA}, kWidth = 4}}>");
    assert_eq!(
        answer(&operand(0), &[64, 64]),
        "#ttg.linear<{register = [[0, 1], [0, 2], [8, 0], [0, 16], [0, 32]], \
         lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []}>"
    );
    assert_eq!(
        answer(&operand(1), &[64, 16]),
        "#ttg.linear<{register = [[1, 0], [2, 0], [16, 0], [32, 0], [0, 8]], \
         lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]], block = []}>"
    );
}

#[test]
fn mfma_repeats_along_a_row_before_its_warps_move_down() {
    let text = "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], \
                isTransposed = true}>";
    assert_eq!(
        answer(text, &[64, 64]),
        "#ttg.linear<{register = [[0, 1], [0, 2], [0, 32], [32, 0]], \
         lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], warp = [[0, 16], [16, 0]], \
         block = []}>"
    );
}

#[test]
fn wmma_1_interleaves_the_halves_of_a_wave() {
    let text = "#ttg.amd_wmma<{version = 1, isTranspose = false, \
                ctaLayout = {warp = [[0, 1], [1, 0]]}}>";
    assert_eq!(
        answer(text, &[64, 64]),
        "#ttg.linear<{register = [[2, 0], [4, 0], [8, 0], [0, 32], [32, 0]], \
         lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], warp = [[0, 16], [16, 0]], block = []}>"
    );
}

#[test]
fn what_is_not_known_is_named() {
    let one = |text: &str| parse(text).unwrap_err().to_string();
    let shared = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    assert_eq!(one(shared), "encoding #ttg.swizzled_shared is not understood");
    assert_eq!(
        one(&format!("#ttg.slice<{{dim = 1, parent = {shared}}}>")),
        "encoding #ttg.swizzled_shared is not understood"
    );
    assert_eq!(
        one(&MMA.replace("Major = 2", "Major = 1")),
        "encoding #ttg.nvidia_mma, version 1.0, is not understood"
    );
}

#[test]
fn errors_say_what_and_where() {
    let mut text = BLOCKED.to_owned();
    assert!(parse(&text).is_ok());
    let one = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(one(""), "byte 0: expected an attribute such as #ttg.blocked");
    assert_eq!(one("#blocked"), "encoding #blocked is not understood");
    assert_eq!(one("#ttg.blocked<{}> x"), "byte 17: expected the end");
    assert_eq!(one("#ttg.blocked<{}>"), "byte 13: field sizePerThread is missing");
    assert_eq!(one(&text.replace("[1, 0]}", "[1, 0)}")), "byte 98: expected `]`");
    assert_eq!(
        one(&text.replace("[1, 0]}", "[1, 1]}")),
        "byte 93: field order must be a permutation of the dimensions"
    );
    assert_eq!(
        one(&text.replace("[4, 8]", "[4, 6]")),
        "byte 55: field threadsPerWarp must be powers of two with a product below 2^64"
    );
    text = text.replace("}>", ", kWidth = 2}>");
    assert_eq!(one(&text), "byte 101: field kWidth is not known here, or is repeated");
    assert_eq!(
        answer(BLOCKED, &[16]),
        "error: the encoding is for tensors of rank 2, the tensor has rank 1"
    );
}

#[test]
fn nesting_is_bounded() {
    let slices = |depth: usize| {
        let (open, close) = ("#ttg.slice<{dim = 0, parent = ".repeat(depth), "}>".repeat(depth));
        format!("{open}{BLOCKED}{close}")
    };
    assert!(parse(&slices(1)).is_ok());
    assert!(matches!(parse(&slices(2)), Err(EncodingError::Field { field: "dim", .. })));
    assert!(matches!(parse(&slices(NESTING / 2)), Err(EncodingError::Nesting { .. })));
    assert!(matches!(parse(&slices(100_000)), Err(EncodingError::Nesting { .. })));
    assert!(matches!(parse(&"[".repeat(1 << 20)), Err(EncodingError::Nesting { .. })));
}

/// Powers of two, one for each dimension, with small products.
fn extents(rank: usize, bits: u32) -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec((0..=bits).prop_map(|log| 1u64 << log), rank)
}

fn any_blocked(rank: usize) -> impl Strategy<Value = String> {
    let order = Just((0..rank).collect::<Vec<usize>>()).prop_shuffle();
    let cluster = prop_oneof![
        Just(Vec::new()),
        (0..rank, 1u32..3).prop_map(move |(dim, bits)| {
            let basis = |bit| (0..rank).map(|d| u64::from(d == dim) << bit).collect();
            (0..bits).map(basis).collect::<Vec<Vec<u64>>>()
        }),
    ];
    (extents(rank, 2), extents(rank, 2), extents(rank, 1), order, cluster).prop_map(
        |(size, threads, warps, order, cluster)| {
            let more = if cluster.is_empty() {
                String::new()
            } else {
                format!(", CGALayout = {cluster:?}")
            };
            blocked(
                &format!("{size:?}"),
                &format!("{threads:?}"),
                &format!("{warps:?}"),
                &format!("{order:?}"),
                &more,
            )
        },
    )
}

fn any_encoding(rank: usize) -> BoxedStrategy<String> {
    let slice = |rank: usize, parent: BoxedStrategy<String>| {
        (0..=rank, parent)
            .prop_map(|(dim, parent)| format!("#ttg.slice<{{dim = {dim}, parent = {parent}}}>"))
    };
    let once = slice(rank, any_blocked(rank + 1).boxed());
    let twice = slice(rank, slice(rank + 1, any_blocked(rank + 2).boxed()).boxed());
    prop_oneof![any_blocked(rank), once, twice].boxed()
}

/// The result of a matrix product, or one of its operands, in tensors of rank 2.
fn any_matrix() -> impl Strategy<Value = String> {
    let warps = || extents(2, 2);
    let result = prop_oneof![
        (warps(), prop_oneof!["2", "3"]).prop_map(|(warps, version)| {
            let depth = if version == "3" { ", 16" } else { "" };
            format!(
                "#ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, \
                 warpsPerCTA = {warps:?}, instrShape = [16, 8{depth}]}}>"
            )
        }),
        (warps(), prop_oneof!["32, 32", "16, 16", "4, 64"], any::<bool>()).prop_map(
            |(warps, size, transposed)| format!(
                "#ttg.amd_mfma<{{version = 3, warpsPerCTA = {warps:?}, \
                 instrShape = [{size}, 8], isTransposed = {transposed}}}>"
            )
        ),
        (1u32..=3, any::<bool>()).prop_map(|(version, transposed)| format!(
            "#ttg.amd_wmma<{{version = {version}, isTranspose = {transposed}, \
             ctaLayout = {{register = [[0, 1]], warp = [[1, 0], [0, 2]]}}}}>"
        )),
        any_blocked(2),
    ];
    (result, prop_oneof![Just("0"), Just("none")], 0u32..4).prop_map(|(result, operand, width)| {
        let width = match result.starts_with("#ttg.blocked") {
            true => String::new(),
            false => format!(", kWidth = {}", 1 << width),
        };
        match operand {
            "none" => result,
            index => format!("#ttg.dot_op<{{opIdx = {index}, parent = {result}{width}}}>"),
        }
    })
}

fn any_case() -> impl Strategy<Value = (String, Vec<u64>)> {
    (1usize..=4).prop_flat_map(|rank| (any_encoding(rank), extents(rank, 6)))
}

/// Every index bit has exactly one column, and the other columns are broadcast.
fn covers_once(layout: &LinearLayout) -> bool {
    let moving: Vec<Basis> = layout.columns().filter(|&basis| basis != Basis::ZERO).collect();
    let distinct: BTreeSet<Basis> = moving.iter().copied().collect();
    let all_unit = moving.iter().all(|basis| basis.is_unit());
    all_unit && distinct.len() == moving.len() && moving.len() == layout.shape.total_bits() as usize
}

proptest! {
    #[test]
    fn no_text_makes_parse_panic(text in "\\PC{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_text_of_its_own_words_makes_parse_panic(
        words in proptest::collection::vec(
            prop_oneof![
                Just("#ttg.blocked"), Just("#ttg.slice"), Just("#ttg.linear"), Just("<{"),
                Just("}>"), Just("dim = "), Just("parent = "), Just("register = "), Just("["),
                Just("]"), Just(", "), Just("0"), Just("18446744073709551616"), Just("true"),
            ],
            0..20,
        )
    ) {
        let _ = parse(&words.concat());
    }

    #[test]
    fn no_damage_makes_parse_or_to_linear_panic(
        (text, extents) in prop_oneof![any_case(), (any_matrix(), extents(2, 8))],
        damage in proptest::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof!["[\\[\\]{}<>,= #0-9a-z]{0,3}", "\\PC"]),
            1..4,
        ),
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        for (index, new) in damage {
            let at = index.index(characters.len());
            characters.splice(at..=at, new.chars());
            if characters.is_empty() {
                break;
            }
        }
        let damaged: String = characters.into_iter().collect();
        let _ = linear_layout(&damaged, &shape(&extents));
    }

    #[test]
    fn every_index_bit_has_one_place((text, extents) in any_case()) {
        let layout = linear_layout(&text, &shape(&extents)).unwrap();
        prop_assert_eq!(&layout.shape, &shape(&extents));
        prop_assert!(covers_once(&layout), "{}", layout);
        prop_assert!(layout.register.iter().all(|&basis| basis != Basis::ZERO), "{}", layout);
    }

    #[test]
    fn matrix_units_place_every_index_bit_once(
        text in any_matrix(),
        extents in extents(2, 8),
        dim in 0usize..2,
    ) {
        let layout = linear_layout(&text, &shape(&extents)).unwrap();
        prop_assert!(covers_once(&layout), "{}", layout);
        let sliced = format!("#ttg.slice<{{dim = {dim}, parent = {text}}}>");
        let layout = linear_layout(&sliced, &shape(&extents[..1])).unwrap();
        prop_assert!(covers_once(&layout), "{}", layout);
        prop_assert!(layout.register.iter().all(|&basis| basis != Basis::ZERO), "{}", layout);
    }

    #[test]
    fn lanes_warps_and_ctas_do_not_depend_on_the_shape(
        (text, extents) in any_case(),
        other in 0u32..6,
    ) {
        let first = linear_layout(&text, &shape(&extents)).unwrap();
        let other = vec![1u64 << other; extents.len()];
        let second = linear_layout(&text, &shape(&other)).unwrap();
        let counts = |layout: &LinearLayout| {
            (layout.lane.len(), layout.warp.len(), layout.block.len())
        };
        prop_assert_eq!(counts(&first), counts(&second));
    }

    #[test]
    fn the_attribute_of_a_layout_is_that_layout((text, extents) in any_case()) {
        let layout = linear_layout(&text, &shape(&extents)).unwrap();
        if layout.columns().next().is_some() {
            let again = linear_layout(&layout.to_string(), &shape(&extents)).unwrap();
            prop_assert_eq!(again, layout);
        }
    }
}
