//! The oracle of plans and of the checker: every place of the machine, one explicit tree each.
//!
//! Nothing here knows a column or a claim. A value is the text-free tree of the elements it was
//! folded from; a place is a (block, warp, lane, register) quadruple.

use std::rc::Rc;

use bitstable_lowering::layout::LinearLayout;
use bitstable_lowering::plan::{Plan, Site, Step};
use bitstable_lowering::tree;

/// A tree of elements, by their row-major position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    Leaf(u64),
    Combine(Rc<Value>, Rc<Value>),
}

/// The values of one thread.
type Thread = Vec<Rc<Value>>;

/// Threads, indexed by block, warp, lane.
type Machine = Vec<Vec<Vec<Thread>>>;

/// The row-major position that a place holds.
fn index(layout: &LinearLayout, register: usize, lane: usize, warp: usize, block: usize) -> u64 {
    let columns = [
        (&layout.register, register),
        (&layout.lane, lane),
        (&layout.warp, warp),
        (&layout.block, block),
    ];
    let mut position = 0;
    for (bases, place) in columns {
        for (bit, basis) in bases.iter().enumerate() {
            if (place >> bit) & 1 == 1 {
                position ^= basis.0;
            }
        }
    }
    position
}

fn machine(layout: &LinearLayout, mut value: impl FnMut(u64) -> Rc<Value>) -> Machine {
    let registers = layout.distinct_registers().1;
    (0..1 << layout.block.len())
        .map(|block| {
            (0..1 << layout.warp.len())
                .map(|warp| {
                    (0..1 << layout.lane.len())
                        .map(|lane| {
                            registers
                                .iter()
                                .map(|&r| value(index(layout, r as usize, lane, warp, block)))
                                .collect()
                        })
                        .collect()
                })
                .collect()
        })
        .collect()
}

fn join(left: &Rc<Value>, right: &Rc<Value>) -> Rc<Value> {
    Rc::new(Value::Combine(left.clone(), right.clone()))
}

/// Splits a register number around a removed bit.
fn with_bit(register: usize, bit: u32, value: usize) -> usize {
    let low = register & ((1 << bit) - 1);
    ((register >> bit) << (bit + 1)) | (value << bit) | low
}

/// Runs one step as hardware would: each lane sees its own values and those it is sent.
fn step(machine: &mut Machine, layout: &LinearLayout, step: &Step) {
    if let Step::Relayout(target) = step {
        // What shared memory does: every element is stored by some place, then loaded.
        let mut memory: Vec<Option<Rc<Value>>> = vec![None; 1 << layout.shape.total_bits()];
        let registers = layout.distinct_registers().1;
        for (b, warps) in machine.iter().enumerate() {
            for (w, lanes) in warps.iter().enumerate() {
                for (l, thread) in lanes.iter().enumerate() {
                    for (value, &r) in thread.iter().zip(&registers) {
                        memory[index(layout, r as usize, l, w, b) as usize] = Some(value.clone());
                    }
                }
            }
        }
        let load = |i: u64| memory[i as usize].clone().expect("an element that no place stored");
        *machine = self::machine(target, load);
        return;
    }
    for warp in machine.iter_mut().flatten() {
        let before = warp.clone();
        for (l, thread) in warp.iter_mut().enumerate() {
            let half = 0..before[l].len() / 2;
            *thread = match step {
                Step::FoldRegister(bit) => half
                    .map(|r| {
                        join(&before[l][with_bit(r, bit.0, 0)], &before[l][with_bit(r, bit.0, 1)])
                    })
                    .collect(),
                Step::Butterfly(bit) => {
                    let (low, high) = (l & !(1 << bit.0), l | 1 << bit.0);
                    before[low].iter().zip(&before[high]).map(|(a, b)| join(a, b)).collect()
                }
                Step::HalfExchange { lane, register } => {
                    let (low, high) = (l & !(1 << lane.0), l | 1 << lane.0);
                    let mine = (l >> lane.0) & 1;
                    half.map(|r| {
                        let r = with_bit(r, register.0, mine);
                        join(&before[low][r], &before[high][r])
                    })
                    .collect()
                }
                Step::Relayout(_) => unreachable!("handled above"),
            };
        }
    }
}

/// The canonical tree of the row that position `row` of the result names.
fn expected(site: &Site, row: u64) -> Value {
    let shape = &site.source.shape;
    let below = (1u64 << shape.offset(site.axis)) - 1;
    let base = (row & below) | ((row & !below) << shape.bits(site.axis));
    let leaves: Vec<Value> = (0..shape.extent(site.axis))
        .map(|a| Value::Leaf(base | (a << shape.offset(site.axis))))
        .collect();
    tree::evaluate(&leaves, &mut |l, r| Value::Combine(Rc::new(l), Rc::new(r)))
}

/// Whether `plan`, run at every place, leaves the canonical tree wherever the result is wanted.
pub fn is_canonical(site: &Site, plan: &Plan) -> bool {
    let mut machine = machine(&site.source, |i| Rc::new(Value::Leaf(i)));
    let mut state = bitstable_lowering::plan::State::new(site);
    // The oracle's only use of `State`: the layout that a relayout starts from.
    for s in &plan.steps {
        self::step(&mut machine, &state.layout, s);
        state = state.after(s);
    }
    if state.bits_left() != 0 {
        return false;
    }
    let result = &site.result;
    let wanted: Vec<Value> =
        (0..1u64 << result.shape.total_bits()).map(|row| expected(site, row)).collect();
    machine.iter().enumerate().all(|(b, warps)| {
        warps.iter().enumerate().all(|(w, lanes)| {
            lanes.iter().enumerate().all(|(l, thread)| {
                plan.gather.iter().enumerate().all(|(r, &source)| {
                    let row = index(result, r, l, w, b) as usize;
                    thread.get(source as usize).is_some_and(|held| **held == wanted[row])
                })
            })
        })
    })
}
