//! The names of layouts: from an encoding's text to its layout, and from one text to another.
//!
//! # Invariants
//! - **N1** A text that is made here gives its tensor the layout that Triton infers at that place.
//! # Held by
//! N1: Triton, which parses and verifies what the pass makes (`tests/python`).
//! # Not here
//! Which values change their names (`flow.rs`).

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use bitstable_lowering::{
    encoding,
    layout::{Basis, Dim, LinearLayout, Shape},
};
use melior::ir::AttributeLike;

use crate::{element::Tensor, ir::Val, text};

/// An encoding's text.
pub type Name = Rc<str>;

/// A tensor's extents and the name of its layout.
#[derive(Clone, Debug)]
pub struct Named {
    /// The extents.
    pub shape: Shape,
    /// The encoding.
    pub name: Name,
}

/// What a name means for a shape, if it means anything.
type Known = Option<Rc<LinearLayout>>;

/// What is known of names; each question is answered once.
#[derive(Default)]
pub struct Names {
    printed: RefCell<HashMap<usize, Name>>,
    layouts: RefCell<HashMap<(Name, Shape), Known>>,
}

impl Names {
    /// The shape and the layout's name of a tensor.
    pub fn of(&self, value: Val<'_>) -> Option<Named> {
        let tensor = Tensor::of(value)?;
        let extents: Option<Vec<u64>> =
            tensor.extents.iter().map(|&e| u64::try_from(e).ok()).collect();
        let shape = Shape::from_extents(&extents?).ok()?;
        let attribute = tensor.encoding?;
        let mut printed = self.printed.borrow_mut();
        let name = printed
            .entry(attribute.to_raw().ptr as usize)
            .or_insert_with(|| text::printed(attribute).into());
        Some(Named { shape, name: Rc::clone(name) })
    }

    /// The layout that `name` gives a tensor of `shape`, if it is understood.
    pub fn layout(&self, name: &Name, shape: &Shape) -> Option<Rc<LinearLayout>> {
        let mut layouts = self.layouts.borrow_mut();
        let read = || encoding::linear_layout(name, shape).ok().map(Rc::new);
        layouts.entry((Rc::clone(name), shape.clone())).or_insert_with(read).clone()
    }

    /// The name for `value` of a layout that is given by its columns: the one that it has, if that
    /// is the same layout.
    pub fn for_value(&self, value: Val<'_>, layout: &LinearLayout) -> Option<Name> {
        let named = self.of(value)?;
        let same = self.layout(&named.name, &named.shape).is_some_and(|known| *known == *layout);
        Some(if same { named.name } else { layout.to_string().into() })
    }
}

/// The name of the layout of a tensor that lacks dimension `dim` of one named `parent`.
pub fn slice(dim: usize, parent: &Name) -> Name {
    format!("#ttg.slice<{{dim = {dim}, parent = {parent}}}>").into()
}

/// What `name` is a slice of, along `dim`.
pub fn parent(name: &Name, dim: usize) -> Option<Name> {
    let inside = name.strip_prefix(&format!("#ttg.slice<{{dim = {dim}, parent = "))?;
    inside.strip_suffix("}>").map(Name::from)
}

/// The layout of the same elements, in row-major order, as a tensor of `shape`.
pub fn reshaped(layout: &LinearLayout, shape: &Shape) -> Option<LinearLayout> {
    let same = layout.shape.total_bits() == shape.total_bits();
    same.then(|| LinearLayout { shape: shape.clone(), ..layout.clone() })
}

/// The layout of a transposed tensor, dimension `i` of which was dimension `order[i]`.
pub fn transposed(layout: &LinearLayout, order: &[Dim]) -> Option<LinearLayout> {
    let old = &layout.shape;
    if order.len() != old.rank() || order.iter().any(|d| d.0 >= old.rank()) {
        return None;
    }
    let extents: Vec<u64> = order.iter().map(|&d| old.extent(d)).collect();
    let shape = Shape::from_extents(&extents).ok()?;
    let moved = |basis: &Basis| -> Option<Basis> {
        let offsets: Vec<u64> = order.iter().map(|&d| old.component(*basis, d)).collect();
        shape.basis(&offsets)
    };
    let columns = |bases: &[Basis]| bases.iter().map(moved).collect::<Option<Vec<Basis>>>();
    Some(LinearLayout {
        register: columns(&layout.register)?,
        lane: columns(&layout.lane)?,
        warp: columns(&layout.warp)?,
        block: columns(&layout.block)?,
        shape: shape.clone(),
    })
}

/// Whose `order` is the opposite of `order`.
pub fn inverse(order: &[Dim]) -> Vec<Dim> {
    (0..order.len()).filter_map(|d| order.iter().position(|o| o.0 == d).map(Dim)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_taken_and_undone() {
        let tile: Name = "#ttg.linear<{register = [], lane = [], warp = [], block = []}>".into();
        let row = slice(1, &tile);
        assert_eq!(parent(&row, 1), Some(tile.clone()));
        assert_eq!(parent(&row, 0), None);
        assert_eq!(parent(&slice(0, &row), 0), Some(row));
        assert_eq!(parent(&tile, 0), None);
    }

    #[test]
    fn a_transposition_is_undone_by_its_inverse() {
        let name = "#ttg.blocked<{sizePerThread = [1, 2, 4], threadsPerWarp = [4, 2, 4], \
                    warpsPerCTA = [2, 1, 2], order = [2, 1, 0]}>";
        let shape = Shape::from_extents(&[16, 8, 32]).expect("powers of two");
        let layout = encoding::linear_layout(name, &shape).expect("a blocked encoding");
        let order = [Dim(2), Dim(0), Dim(1)];
        let turned = transposed(&layout, &order).expect("a permutation");
        assert_eq!(turned.shape.extents(), [32, 16, 8]);
        assert_eq!(turned.register[0], turned.shape.unit(Dim(0), 0));
        assert_eq!(transposed(&turned, &inverse(&order)), Some(layout));
    }
}
