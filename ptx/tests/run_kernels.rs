//! Whole kernels against plain Rust: an affine map, matrix products, attention, a mixture of
//! experts, and CTAs that speak to each other.
//!
//! The kernels are those that the formalisation of the PTX model takes as its examples.

mod common;

use bitstable_ptx::{exec::Schedule, num::mma::MmaModel};
use common::{Kernel, Numbers, Stream, bits, schedules, shape};
use half::f16;

const KERNELS: &str = include_str!("programs/kernels.ptx");
const MMA: &str = include_str!("programs/mma.ptx");
const EXPERTS: &str = include_str!("programs/experts.ptx");
const BETWEEN: &str = include_str!("programs/between.ptx");

#[test]
fn affine_map() {
    let kernel = Kernel::new(KERNELS, "affine");
    let x = Numbers(1).floats(150);
    let (a, b) = (1.7_f32, -0.3_f32);
    let mut stream = Stream::default();
    let (y, given) = (stream.buffer("y", &[9.0_f32; 160]), stream.buffer("x", &x));
    stream.launch(&kernel, &shape(3, 64), arguments![y, given, a, b, 150_u32]).clean();
    let mut expected: Vec<f32> = x.iter().map(|x| x * a + b).collect();
    expected.resize(160, 9.0);
    assert_eq!(bits(&stream.read(y)), bits(&expected));
}

#[test]
fn matrix_product_one_thread_an_element() {
    let kernel = Kernel::new(KERNELS, "matmul");
    for (m, n, k) in [(5, 7, 9), (16, 16, 1), (1, 1, 40), (4, 6, 0)] {
        let mut numbers = Numbers(7 + k as u64);
        let (a, b) = (numbers.floats(m * k), numbers.floats(k * n));
        let mut stream = Stream::default();
        let c = stream.buffer("c", &vec![5.0_f32; m * n]);
        // A buffer is never empty: with k = 0 its element must not be touched.
        let pad = |v: &[f32]| if v.is_empty() { vec![f32::NAN] } else { v.to_vec() };
        let (pa, pb) = (stream.buffer("a", &pad(&a)), stream.buffer("b", &pad(&b)));
        let mut over = shape(1, 1);
        (over.grid, over.block) = ([2, 2, 1], [8, 8, 1]);
        let sizes = (m as u32, n as u32, k as u32);
        let run = stream.launch(&kernel, &over, arguments![c, pa, pb, sizes.0, sizes.1, sizes.2]);
        run.clean();
        let expected: Vec<f32> = (0..m * n)
            .map(|at| {
                let (row, column) = (at / n, at % n);
                (0..k).fold(0.0, |sum: f32, i| a[row * k + i].mul_add(b[i * n + column], sum))
            })
            .collect();
        assert_eq!(bits(&stream.read(c)), bits(&expected), "{m} {n} {k}");
    }
}

/// The tile's expected values when each step of 16 adds exactly and rounds once; the sums of these
/// inputs are exact in `f64`.
fn tile(a: &[f32], b: &[f32], k: usize) -> Vec<f32> {
    let mut d = vec![0.0_f32; 128];
    for start in (0..k).step_by(16) {
        for (at, value) in d.iter_mut().enumerate() {
            let (row, column) = (at / 8, at % 8);
            let sum: f64 = (start..start + 16)
                .map(|i| f64::from(a[row * k + i]) * f64::from(b[i * 8 + column]))
                .sum();
            *value = (f64::from(*value) + sum) as f32;
        }
    }
    d
}

/// Runs the tile kernel on `k` numbers a row.
fn run_tile(kernel: &Kernel, k: usize, model: MmaModel) -> (common::Run, Vec<f32>, Vec<f32>) {
    let mut numbers = Numbers(k as u64 + 3);
    let halves = |numbers: &mut Numbers, count| -> Vec<f32> {
        (0..count).map(|_| f16::from_f32(numbers.float()).to_f32()).collect()
    };
    let (a, b) = (halves(&mut numbers, 16 * k), halves(&mut numbers, 8 * k));
    let packed = |values: &[f32]| -> Vec<u16> {
        let packed = values.iter().map(|value| f16::from_f32(*value).to_bits());
        packed.chain([0x7e00; 8]).collect()
    };
    let mut stream = Stream::default();
    let d = stream.buffer("d", &[f32::NAN; 128]);
    let (pa, pb) = (stream.buffer("a", &packed(&a)), stream.buffer("b", &packed(&b)));
    let mut over = shape(1, 32);
    over.options.mma = model;
    let run = stream.launch(kernel, &over, arguments![d, pa, pb, k as u32]);
    (run, stream.read(d), tile(&a, &b, k))
}

#[test]
fn matrix_product_by_a_warp_with_asynchronous_copies() {
    let kernel = Kernel::new(MMA, "tile");
    for k in [0, 16, 32, 48, 160] {
        let (run, found, expected) = run_tile(&kernel, k, MmaModel::Exact);
        run.clean();
        assert_eq!(bits(&found), bits(&expected), "k = {k}");
    }
}

#[test]
fn a_copy_that_is_read_before_it_lands_is_a_race() {
    let kernel = Kernel::variant(MMA, "tile", &["early"]);
    let (run, ..) = run_tile(&kernel, 32, MmaModel::Exact);
    assert_eq!(run.errors(), ["race", "uninitialised"], "{}", run.shown());
    run.at("race", &[kernel.line("read"), kernel.line("copy")]);
}

#[test]
fn a_copy_into_a_buffer_that_others_still_read_is_a_race() {
    let kernel = Kernel::variant(MMA, "tile", &["unordered"]);
    let (run, ..) = run_tile(&kernel, 48, MmaModel::Exact);
    assert_eq!(run.errors(), ["race"], "{}", run.shown());
    run.at("race", &[kernel.line("next"), kernel.line("read")]);
    // With two steps no buffer is used twice.
    run_tile(&kernel, 32, MmaModel::Exact).0.clean();
}

/// Scores that are whole numbers make every weight a power of two, so that the approximate
/// exponential is exact and the whole chain can be followed in `f32`.
#[test]
fn attention_with_a_running_maximum() {
    let kernel = Kernel::new(KERNELS, "attention");
    let (rows, keys) = (37, 19);
    let mut numbers = Numbers(11);
    let mut whole =
        |count| -> Vec<f32> { (0..count).map(|_| numbers.below(5) as f32 - 2.0).collect() };
    let (q, k) = (whole(rows * 4), whole(keys * 4));
    let v = Numbers(12).floats(keys * 4);
    let mut stream = Stream::default();
    let out = stream.buffer("out", &vec![0.0_f32; rows * 4]);
    let (pq, pk, pv) = (stream.buffer("q", &q), stream.buffer("k", &k), stream.buffer("v", &v));
    let sizes = (rows as u32, keys as u32);
    let arguments = arguments![out, pq, pk, pv, sizes.0, sizes.1];
    stream.launch(&kernel, &shape(2, 32), arguments).clean();
    let expected: Vec<f32> = q.chunks(4).flat_map(|q| attend(q, &k, &v)).collect();
    let found: Vec<f32> = stream.read(out);
    assert_eq!(bits(&found), bits(&expected));
    for (row, q) in q.chunks(4).enumerate() {
        for (found, exact) in found[row * 4..].iter().zip(softmax(q, &k, &v)) {
            assert!((f64::from(*found) - exact).abs() < 1e-6, "row {row}: {found} {exact}");
        }
    }
}

/// The kernel's own chain.
fn attend(q: &[f32], k: &[f32], v: &[f32]) -> [f32; 4] {
    let (mut o, mut m, mut l) = ([0.0_f32; 4], f32::NEG_INFINITY, 0.0_f32);
    for (k, v) in k.chunks(4).zip(v.chunks(4)) {
        let first = q[0] * k[0];
        let s = (1..4).fold(first, |s, i| q[i].mul_add(k[i], s));
        let new = m.max(s);
        let (scale, w) = ((m - new).exp2(), (s - new).exp2());
        l = l.mul_add(scale, w);
        for (o, v) in o.iter_mut().zip(v) {
            *o = w.mul_add(*v, *o * scale);
        }
        m = new;
    }
    o.map(|o| o / l)
}

/// The definition, without a running maximum.
fn softmax(q: &[f32], k: &[f32], v: &[f32]) -> [f64; 4] {
    let score = |k: &[f32]| (0..4).map(|i| f64::from(q[i]) * f64::from(k[i])).sum::<f64>();
    let weights: Vec<f64> = k.chunks(4).map(|k| score(k).exp2()).collect();
    let total: f64 = weights.iter().sum();
    let column = |i| v.chunks(4).zip(&weights).map(|(v, w)| w * f64::from(v[i])).sum::<f64>();
    std::array::from_fn(|i| column(i) / total)
}

/// What the three launches leave in `x`.
fn mixture(x: &[f32], gate: &[f32], weight: &[f32]) -> Vec<f32> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0.0, |s, (a, b)| a.mul_add(*b, s));
    let token = |x: &[f32]| -> Vec<f32> {
        let scores: Vec<f32> = gate.chunks(8).map(|g| dot(x, g)).collect();
        let mut order: Vec<usize> = (0..4).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let (best, next) = (scores[order[0]], scores[order[1]]);
        let square = best * best;
        let share = square / (next.mul_add(next, square) + 1.0);
        let rows = |e: usize| weight[e * 64..][..64].chunks(8).map(|row| dot(x, row));
        let pairs = rows(order[0]).zip(rows(order[1]));
        pairs.map(|(a, b)| b.mul_add(1.0 - share, a * share)).collect()
    };
    x.chunks(8).flat_map(token).collect()
}

#[test]
fn mixture_of_experts_in_three_launches_a_layer() {
    let [route, expert, combine] =
        ["route", "expert", "combine"].map(|entry| Kernel::new(EXPERTS, entry));
    let tokens = 21;
    let mut numbers = Numbers(5);
    let (x, gate) = (numbers.floats(tokens * 8), numbers.floats(4 * 8));
    let weight = numbers.floats(4 * 8 * 8);
    let mut stream = Stream::default();
    let hidden = stream.buffer("x", &x);
    let (gates, weights) = (stream.buffer("gate", &gate), stream.buffer("weight", &weight));
    let chosen = stream.buffer("chosen", &vec![u32::MAX; tokens * 2]);
    let share = stream.buffer("share", &vec![0.0_f32; tokens * 2]);
    let y = stream.buffer("y", &vec![0.0_f32; tokens * 16]);
    let (mut pairs, mut expected) = (shape(2, 8), x);
    pairs.grid[1] = tokens as u32;
    for layer in 0..2 {
        let arguments = arguments![chosen, share, hidden, gates, tokens as u32];
        stream.launch(&route, &shape(1, 32), arguments).clean();
        stream.launch(&expert, &pairs, arguments![y, hidden, weights, chosen]).clean();
        let arguments = arguments![hidden, y, share];
        stream.launch(&combine, &shape(tokens as u32, 8), arguments).clean();
        expected = mixture(&expected, &gate, &weight);
        assert_eq!(bits(&stream.read(hidden)), bits(&expected), "layer {layer}");
    }
}

#[test]
fn work_drawn_by_ticket_ends_the_same_under_every_schedule() {
    let kernel = Kernel::new(BETWEEN, "tickets");
    let pieces = 7_u32;
    let given: Vec<u32> = (0..pieces * 32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let expected: Vec<u32> =
        (0..).zip(&given).map(|(i, v)| v.wrapping_mul(*v).wrapping_add(i / 32)).collect();
    for (ctas, seeds) in [(2, 50), (5, 10), (12, 4)] {
        for schedule in schedules(seeds) {
            let mut stream = Stream::default();
            let out = stream.buffer("out", &vec![0_u32; given.len()]);
            let (input, ticket) = (stream.buffer("in", &given), stream.buffer("ticket", &[0_u32]));
            let run = stream.launch(
                &kernel,
                &shape(ctas, 32).schedule(schedule),
                arguments![out, input, ticket, pieces],
            );
            run.clean();
            assert_eq!(stream.read::<u32>(out), expected, "{ctas} CTAs, {schedule}");
            // Each CTA draws once too often.
            assert_eq!(stream.read::<u32>(ticket), [pieces + ctas]);
        }
    }
}

fn run_locked(kernel: &Kernel, ctas: u32, schedule: Schedule) -> (common::Run, u32) {
    let mut stream = Stream::default();
    let (counter, lock) = (stream.buffer("counter", &[0_u32]), stream.buffer("lock", &[0_u32]));
    let over = shape(ctas, 32).schedule(schedule).step_limit(1 << 22);
    let run = stream.launch(kernel, &over, arguments![counter, lock, 5_u32]);
    (run, stream.read(counter)[0])
}

#[test]
fn a_spin_lock_between_ctas_protects_and_ends() {
    let kernel = Kernel::new(BETWEEN, "locked");
    for (ctas, seeds) in [(2, 30), (6, 10)] {
        for schedule in schedules(seeds) {
            let (run, counter) = run_locked(&kernel, ctas, schedule);
            // Who took the lock first is noted; that all give it back by the same exchange is not.
            assert!(run.errors().is_empty(), "{}", run.shown());
            assert_eq!(counter, 5 * ctas * (ctas + 1) / 2, "{ctas} CTAs, {schedule}");
        }
    }
}

#[test]
fn a_lock_taken_without_a_fence_protects_nothing() {
    let kernel = Kernel::variant(BETWEEN, "locked", &["open"]);
    let (run, _) = run_locked(&kernel, 2, Schedule::Forward);
    run.at("race", &[kernel.line("load"), kernel.line("store")]);
}

fn run_handover(kernel: &Kernel, ctas: u32, schedule: Schedule) -> (common::Run, Vec<u32>) {
    let mut stream = Stream::default();
    let out = stream.buffer("out", &vec![0_u32; 64 * (ctas as usize - 1)]);
    let (data, flag) = (stream.buffer("data", &[0_u32; 64]), stream.buffer("flag", &[0_u32]));
    let over = shape(ctas, 64).schedule(schedule);
    let run = stream.launch(kernel, &over, arguments![out, data, flag]);
    (run, stream.read(out))
}

#[test]
fn a_flag_that_is_released_and_acquired_hands_data_over() {
    let kernel = Kernel::new(BETWEEN, "handover");
    let expected: Vec<u32> = (0..64).map(|t| t * t + 7).collect();
    for (ctas, seeds) in [(2, 30), (4, 8)] {
        for schedule in schedules(seeds) {
            let (run, out) = run_handover(&kernel, ctas, schedule);
            run.clean();
            assert_eq!(out, expected.repeat(ctas as usize - 1), "{ctas} CTAs, {schedule}");
        }
    }
}

#[test]
fn a_relaxed_flag_hands_nothing_over() {
    for fault in ["relaxed", "weakened"] {
        let kernel = Kernel::variant(BETWEEN, "handover", &[fault]);
        for schedule in schedules(6) {
            let (run, _) = run_handover(&kernel, 2, schedule);
            assert_eq!(run.errors(), ["race"], "{fault}, {schedule}: {}", run.shown());
            run.at("race", &[kernel.line("consume"), kernel.line("produce")]);
        }
    }
}
