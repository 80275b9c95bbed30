//! A state of the search in some forty bytes: which index bit each place bit carries.
//!
//! # Idea
//! Once every place bit carries one index bit or none, a layout is a list of bit numbers. Index
//! bits keep the number that they have in the unfolded tensor, so that a fold renames nothing: it
//! only counts up which axis bit is next.
//! # Invariants
//! - **W1** Equal states are equal placements, whatever way led to them: unused places are zero.
//! - **W2** A placement has as many lanes and warps as its [`Frame`]; blocks never change and are
//!   not written down.
//! # Held by
//! W1: [`Placement::without_register`] and the constructors. W2: all placements of one search come
//! from one frame.
//! # Not here
//! Layouts that are no permutations: the planner moves away from them first.

use std::hash::{Hash, Hasher};

use crate::layout::{Basis, LinearLayout};
use crate::plan::{Site, State};

/// An index bit of the unfolded tensor, or none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Code(u8);

impl Code {
    /// What a broadcast bit carries.
    pub const NONE: Code = Code(0);

    /// The one bit that `basis` has, or none.
    fn of(basis: Basis) -> Code {
        if basis == Basis::ZERO { Code::NONE } else { Code(basis.0.trailing_zeros() as u8 + 1) }
    }

    /// Zero for none, and one more than the bit's number otherwise.
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// As a column of the unfolded tensor.
    pub fn basis(self) -> Basis {
        match self {
            Code::NONE => Basis::ZERO,
            Code(number) => Basis(1 << (number - 1)),
        }
    }
}

const REGISTER_BITS: usize = 24;
const LANE_BITS: usize = 6;
const WARP_BITS: usize = 8;

/// Which index bit each place bit carries, and how many axis bits are folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    folded: u8,
    registers: u8,
    lanes: u8,
    warps: u8,
    register: [Code; REGISTER_BITS],
    lane: [Code; LANE_BITS],
    warp: [Code; WARP_BITS],
}

/// Bytes at once, which is several times faster than one by one.
impl Hash for Placement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let codes = |codes: &[Code], bytes: &mut [u8]| {
            bytes.iter_mut().zip(codes).for_each(|(byte, code)| *byte = code.0);
        };
        let mut bytes = [0; 1 + REGISTER_BITS + LANE_BITS + WARP_BITS];
        bytes[0] = self.folded;
        codes(&self.register, &mut bytes[1..]);
        codes(&self.lane, &mut bytes[1 + REGISTER_BITS..]);
        codes(&self.warp, &mut bytes[1 + REGISTER_BITS + LANE_BITS..]);
        state.write(&bytes);
    }
}

impl Placement {
    /// A layout that is a permutation, of a tensor that is taken as unfolded.
    pub fn of(layout: &LinearLayout) -> Placement {
        Placement::written(layout, 0, Code::of)
    }

    fn written(layout: &LinearLayout, folded: u32, code: impl Fn(Basis) -> Code) -> Placement {
        let mut placement = Placement {
            folded: folded as u8,
            registers: layout.register.len() as u8,
            lanes: layout.lane.len() as u8,
            warps: layout.warp.len() as u8,
            register: [Code::NONE; REGISTER_BITS],
            lane: [Code::NONE; LANE_BITS],
            warp: [Code::NONE; WARP_BITS],
        };
        let places = [
            (&mut placement.register[..], &layout.register),
            (&mut placement.lane[..], &layout.lane),
            (&mut placement.warp[..], &layout.warp),
        ];
        for (codes, bases) in places {
            codes.iter_mut().zip(bases).for_each(|(c, &b)| *c = code(b));
        }
        placement
    }

    /// Whether placements can be written down for tensors of `2^elements` elements on `2^lanes`
    /// lanes and `2^warps` warps. No index bit stands twice, so registers need no more bits than
    /// the tensor has. Triton's tensors have at most 2^20 elements.
    pub fn fits(elements: u32, lanes: usize, warps: usize) -> bool {
        elements as usize <= REGISTER_BITS && lanes <= LANE_BITS && warps <= WARP_BITS
    }

    /// What the register bits carry.
    pub fn register(&self) -> &[Code] {
        &self.register[..self.registers as usize]
    }

    /// What the lane bits carry.
    pub fn lane(&self) -> &[Code] {
        &self.lane[..self.lanes as usize]
    }

    /// What the warp bits carry.
    pub fn warp(&self) -> &[Code] {
        &self.warp[..self.warps as usize]
    }

    /// How many values a thread holds.
    pub fn registers(&self) -> usize {
        1 << self.registers
    }

    /// One axis bit further. The caller says where it was.
    pub fn folded(mut self) -> Placement {
        self.folded += 1;
        self
    }

    /// Without register bit `bit`; higher ones move down.
    pub fn without_register(mut self, bit: usize) -> Placement {
        let last = self.registers as usize - 1;
        self.register.copy_within(bit + 1..=last, bit);
        self.register[last] = Code::NONE;
        self.registers -= 1;
        self
    }

    /// With these in registers.
    fn hold(&mut self, codes: impl Iterator<Item = Code>) {
        self.register = [Code::NONE; REGISTER_BITS];
        self.registers = 0;
        for (place, code) in self.register.iter_mut().zip(codes) {
            *place = code;
            self.registers += 1;
        }
    }

    /// With `code` in lane bit `bit`.
    pub fn with_lane(mut self, bit: usize, code: Code) -> Placement {
        self.lane[bit] = code;
        self
    }
}

/// What the placements of one search have in common: how index bits are numbered.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Where the axis bits begin.
    offset: u32,
    /// How many there are.
    bits: u32,
}

impl Frame {
    /// The frame of a site.
    pub fn new(site: &Site) -> Frame {
        let shape = &site.source.shape;
        Frame { offset: shape.offset(site.axis), bits: shape.bits(site.axis) }
    }

    /// How many axis bits there are.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// How many axis bits are left to fold.
    pub fn bits_left(&self, at: Placement) -> u32 {
        self.bits - u32::from(at.folded)
    }

    /// The axis bit that folds next.
    pub fn next(&self, at: Placement) -> Code {
        self.axis(u32::from(at.folded))
    }

    /// The axis bits that are left, in the order in which they fold.
    pub fn axis_left(&self, at: Placement) -> impl Iterator<Item = Code> + use<> {
        let frame = *self;
        (u32::from(at.folded)..self.bits).map(move |bit| frame.axis(bit))
    }

    /// Whether `code` is an axis bit.
    pub fn on_axis(&self, code: Code) -> bool {
        let number = u32::from(code.0);
        number > self.offset && number <= self.offset + self.bits
    }

    fn axis(&self, bit: u32) -> Code {
        Code((self.offset + bit + 1) as u8)
    }

    /// A column of a tensor whose axis lacks its lowest `folded` bits.
    fn code(&self, basis: Basis, folded: u32) -> Code {
        match basis {
            Basis::ZERO => Code::NONE,
            Basis(bits) => {
                let position = bits.trailing_zeros();
                let missing = if position < self.offset { 0 } else { folded };
                Code((position + missing + 1) as u8)
            }
        }
    }

    fn basis(&self, code: Code, folded: u32) -> Basis {
        match code {
            Code::NONE => Basis::ZERO,
            Code(number) => {
                let position = u32::from(number) - 1;
                let missing = if position < self.offset { 0 } else { folded };
                Basis(1 << (position - missing))
            }
        }
    }

    fn write(&self, layout: &LinearLayout, folded: u32) -> Placement {
        Placement::written(layout, folded, |basis| self.code(basis, folded))
    }

    /// A state whose layout is a permutation.
    pub fn placement(&self, state: &State) -> Placement {
        self.write(&state.layout, self.bits - state.bits_left())
    }

    /// A layout of the tensor without the axis: all of it is folded.
    pub fn rows(&self, result: &LinearLayout) -> Placement {
        self.write(result, self.bits)
    }

    /// Whether each place of `at` has what `rows` wants there.
    pub fn holds(&self, at: Placement, rows: Placement) -> bool {
        let has = |code: &Code| at.register().contains(code);
        at.lane() == rows.lane() && at.warp() == rows.warp() && rows.register().iter().all(has)
    }

    /// The rows as in `rows`, and what is left of the axis in registers but for its `lanes` highest
    /// bits, which go to lanes that `rows` leaves free.
    pub fn gathered(&self, at: Placement, rows: Placement, lanes: usize) -> Placement {
        let left = self.bits_left(at) as usize;
        let held = left - lanes;
        let mut gathered = Placement { folded: at.folded, ..rows };
        let free = (0..rows.lanes as usize).filter(|&lane| rows.lane[lane] == Code::NONE);
        for (lane, bit) in free.zip(held..left) {
            gathered.lane[lane] = self.left(at, bit);
        }
        let axis = (0..held).map(|bit| self.left(at, bit));
        gathered.hold(axis.chain(rows.register().iter().copied()));
        gathered
    }

    /// The rows spread over lanes and warps whatever the result wants, and what is left of the axis
    /// in registers but for its `lanes` highest bits, which go to the lowest lanes.
    pub fn spread(&self, at: Placement, rows: Placement, lanes: usize) -> Placement {
        let left = self.bits_left(at) as usize;
        let held = left - lanes;
        let wanted = [rows.lane(), rows.warp(), rows.register()];
        let some = |code: &Code| *code != Code::NONE;
        let mut bits = wanted.into_iter().flatten().copied().filter(some);
        let mut spread = Placement {
            folded: at.folded,
            lane: [Code::NONE; LANE_BITS],
            warp: [Code::NONE; WARP_BITS],
            ..rows
        };
        for (lane, bit) in (0..lanes).zip(held..left) {
            spread.lane[lane] = self.left(at, bit);
        }
        for place in &mut spread.lane[lanes..rows.lanes as usize] {
            *place = bits.next().unwrap_or(Code::NONE);
        }
        for place in &mut spread.warp[..rows.warps as usize] {
            *place = bits.next().unwrap_or(Code::NONE);
        }
        spread.hold((0..held).map(|bit| self.left(at, bit)).chain(bits));
        spread
    }

    /// The axis bit that is the `bit`th of those that are left.
    fn left(&self, at: Placement, bit: usize) -> Code {
        self.axis(u32::from(at.folded) + bit as u32)
    }

    /// The layout that `at` stands for, of the tensor of `state` and with its blocks.
    pub fn layout(&self, at: Placement, state: &State) -> LinearLayout {
        let columns = |codes: &[Code]| {
            codes.iter().map(|&code| self.basis(code, u32::from(at.folded))).collect()
        };
        LinearLayout {
            shape: state.layout.shape.clone(),
            register: columns(at.register()),
            lane: columns(at.lane()),
            warp: columns(at.warp()),
            block: state.layout.block.clone(),
        }
    }
}
