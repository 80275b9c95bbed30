//! Where the parts of a drawn tree are.
//!
//! # Idea
//! What stands on the ground (leaves, padding, subtrees too large to show) is placed in index order
//! at equal steps; a join stands above the middle of the ground it covers, at its height. Where two
//! joins of one height would touch, they are pushed apart.
//! # Invariants
//! - **Y1** No two labels and no two marks overlap.
//! - **Y2** At most `most` items stand on the ground, and no join is higher than [`HIGHEST`].
//! # Held by
//! Y1: `tests/symbol_svg.rs` computes boxes. Y2: `shown`.

use rustc_hash::FxHashMap;

use crate::symbol::{
    graph::{Graph, Leaf, Node, NodeId},
    print::{Names, element, expression},
    verdict::{Analysis, Role},
};

/// Joins above one another in a drawing.
pub const HIGHEST: u32 = 24;

/// Size of a leaf's label, in pixels.
pub const LABEL: f64 = 12.0;

/// Width of a character of a monospaced font, in ems, rounded up.
pub const EM: f64 = 0.61;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Leaf,
    Padding,
    /// A subtree that is not shown.
    Elided,
    Join {
        left: usize,
        right: usize,
    },
}

/// A part of the drawing.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    pub entry: u32,
    pub node: NodeId,
    pub kind: Kind,
    pub label: String,
    /// First and last element below, along the axis; `None` where elements have no order.
    pub covers: Option<[u32; 2]>,
    pub departs: bool,
    pub x: f64,
    pub y: f64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// Children after parents.
    pub items: Vec<Item>,
    pub width: f64,
    /// From the highest join to below the labels.
    pub height: f64,
    /// Leaves' labels are written upwards.
    pub upright: bool,
    /// Distance of neighbours on the ground.
    pub step: f64,
}

/// Radius of a join.
pub fn radius(step: f64) -> f64 {
    if step >= 30.0 { 11.0 } else { 5.5 }
}

/// Lays a tree out, its upper left corner at the origin.
pub fn layout(graph: &Graph, analysis: &Analysis, names: Names<'_>, most: usize) -> Layout {
    let entries = shown(analysis, most);
    let mut items = items(graph, analysis, names, &entries);
    cover(analysis, &mut items);
    let ground = ground(&items);
    let longest = ground.iter().map(|at| items[*at].label.chars().count()).max().unwrap_or(1);
    let wide = longest as f64 * LABEL * EM;
    let upright = ground.len() > 20 || wide > 84.0;
    let step = if upright { 16.0 } else { (wide + 16.0).max(44.0) };
    for (place, at) in ground.iter().enumerate() {
        items[*at].x = (place as f64 + 0.5) * step;
    }
    let heights = heights(&items);
    let top = heights.iter().copied().max().unwrap_or(0);
    center(&mut items);
    for height in 1..=top {
        push_apart(&mut items, &heights, height, 2.0 * radius(step) + 3.0);
    }
    let label_room = if upright { wide } else { LABEL } + 24.0;
    let rows = rows(&items, &heights, top);
    let ground_y = rows.iter().sum::<f64>() + radius(step) + 4.0;
    for (item, height) in items.iter_mut().zip(&heights) {
        item.y = ground_y - rows[..*height as usize].iter().sum::<f64>();
    }
    let edge = items.iter().map(|item| item.x).fold(0.0, f64::max) + radius(step) + 2.0;
    let width = edge.max(ground.len() as f64 * step);
    Layout { items, width, height: ground_y + label_room, upright, step }
}

/// Entries to draw, and whether each is opened: level by level while the ground has room.
fn shown(analysis: &Analysis, most: usize) -> Vec<(u32, bool)> {
    let entries = &analysis.tree.entries;
    let mut opened = FxHashMap::<u32, bool>::default();
    let (mut level, mut on_ground) = (vec![0u32], 1);
    for _ in 0..HIGHEST {
        let joins = level.iter().filter(|at| entries[**at as usize].join.is_some()).count();
        if joins == 0 || on_ground + joins > most.max(2) {
            break;
        }
        on_ground += joins;
        let mut next = Vec::with_capacity(2 * joins);
        for at in level {
            if let Some(sides) = entries[at as usize].join {
                opened.insert(at, true);
                next.extend(sides);
            }
        }
        level = next;
    }
    // Left to right, parents first.
    let (mut out, mut stack) = (Vec::new(), vec![0u32]);
    while let Some(at) = stack.pop() {
        let open = opened.contains_key(&at);
        out.push((at, open));
        if let (true, Some([left, right])) = (open, entries[at as usize].join) {
            stack.extend([right, left]);
        }
    }
    out
}

fn items(
    graph: &Graph,
    analysis: &Analysis,
    names: Names<'_>,
    entries: &[(u32, bool)],
) -> Vec<Item> {
    let places: FxHashMap<u32, usize> =
        entries.iter().enumerate().map(|(place, (at, _))| (*at, place)).collect();
    let place = |at: &u32| places.get(at).copied().unwrap_or(0);
    let item = |(at, open): &(u32, bool)| {
        let entry = analysis.tree.entries[*at as usize];
        let role = analysis.order.as_ref().and_then(|order| order.roles.get(at));
        let number = matches!(graph.node(entry.node), Node::Constant { .. });
        let kind = match (entry.join, role) {
            (Some([left, right]), _) if *open => {
                Kind::Join { left: place(&left), right: place(&right) }
            }
            (Some(_), _) => Kind::Elided,
            (None, Some(Role::Padding { .. } | Role::Number)) => Kind::Padding,
            (None, None) if number => Kind::Padding,
            (None, Some(Role::Element(_)) | None) => Kind::Leaf,
        };
        let label = match kind {
            Kind::Leaf => leaf_label(graph, entry.node, names),
            Kind::Padding => expression(graph, entry.node, names, 1),
            Kind::Elided | Kind::Join { .. } => String::new(),
        };
        Item {
            entry: *at,
            node: entry.node,
            kind,
            label,
            covers: None,
            departs: analysis.departs.get(*at as usize).copied().unwrap_or(false),
            x: 0.0,
            y: 0.0,
        }
    };
    entries.iter().map(item).collect()
}

/// The expression when it is short; otherwise its first input element.
fn leaf_label(graph: &Graph, node: NodeId, names: Names<'_>) -> String {
    let whole = expression(graph, node, names, 3);
    if whole.chars().count() <= 14 && !whole.contains('…') {
        return whole;
    }
    let mut next = Some(node);
    for _ in 0..64 {
        let Some(at) = next else { break };
        if let Node::Leaf(leaf) = graph.node(at) {
            return if leaf.buffer == Leaf::UNKNOWN { "?".into() } else { element(leaf, names) };
        }
        let number = |arg: &&NodeId| matches!(graph.node(**arg), Node::Constant { .. });
        next = graph.args(at).iter().find(|arg| !number(arg)).copied();
    }
    "…".into()
}

/// First and last element below each item, and a label for what is not shown.
fn cover(analysis: &Analysis, items: &mut [Item]) {
    let Some(order) = &analysis.order else {
        return label_elided(analysis, items);
    };
    let entries = &analysis.tree.entries;
    let mut spans: Vec<Option<[u32; 2]>> = vec![None; entries.len()];
    for at in (0..entries.len()).rev() {
        spans[at] = match entries[at].join {
            Some([left, right]) => merge(spans[left as usize], spans[right as usize]),
            None => match order.roles.get(&(at as u32)) {
                Some(Role::Element(index)) => Some([*index, *index]),
                Some(Role::Padding { .. } | Role::Number) | None => None,
            },
        };
    }
    for item in items.iter_mut() {
        item.covers = spans.get(item.entry as usize).copied().flatten();
    }
    label_elided(analysis, items);
}

fn merge(a: Option<[u32; 2]>, b: Option<[u32; 2]>) -> Option<[u32; 2]> {
    match (a, b) {
        (Some([a, b]), Some([c, d])) => Some([a.min(c), b.max(d)]),
        (one, other) => one.or(other),
    }
}

/// What is not shown is named by the elements it covers, and departs if anything in it does.
fn label_elided(analysis: &Analysis, items: &mut [Item]) {
    let entries = &analysis.tree.entries;
    if !items.iter().any(|item| item.kind == Kind::Elided) {
        return;
    }
    let mut leaves = vec![1u32; entries.len()];
    let mut departs = analysis.departs.clone();
    departs.resize(entries.len(), false);
    for at in (0..entries.len()).rev() {
        if let Some([left, right]) = entries[at].join.map(|sides| sides.map(|at| at as usize)) {
            leaves[at] = leaves[left] + leaves[right];
            departs[at] |= departs[left] | departs[right];
        }
    }
    for item in items.iter_mut().filter(|item| item.kind == Kind::Elided) {
        let count = leaves[item.entry as usize];
        item.departs = departs[item.entry as usize];
        item.label = match item.covers {
            Some([first, last]) if last - first + 1 == count => format!("[{first}, {})", last + 1),
            Some(_) | None => format!("{count} leaves"),
        };
    }
}

/// Items on the ground, left to right: elements in their order, padding behind them. Without an
/// order, as the tree has them.
fn ground(items: &[Item]) -> Vec<usize> {
    let on_ground = |at: &usize| !matches!(items[*at].kind, Kind::Join { .. });
    let mut out: Vec<usize> = (0..items.len()).filter(on_ground).collect();
    if items.iter().any(|item| item.covers.is_some()) {
        out.sort_by_key(|at| items[*at].covers.map_or(u32::MAX, |[first, _]| first));
    }
    out
}

fn heights(items: &[Item]) -> Vec<u32> {
    let mut out = vec![0; items.len()];
    for at in (0..items.len()).rev() {
        if let Kind::Join { left, right } = items[at].kind {
            out[at] = 1 + out[left].max(out[right]);
        }
    }
    out
}

/// A join stands above the middle of the ground it covers.
fn center(items: &mut [Item]) {
    let mut spans: Vec<[f64; 2]> = items.iter().map(|item| [item.x, item.x]).collect();
    for at in (0..items.len()).rev() {
        if let Kind::Join { left, right } = items[at].kind {
            spans[at] = [spans[left][0].min(spans[right][0]), spans[left][1].max(spans[right][1])];
            items[at].x = f64::midpoint(spans[at][0], spans[at][1]);
        }
    }
}

/// Moves joins of one height right until none touch, then all of them back by the mean.
fn push_apart(items: &mut [Item], heights: &[u32], height: u32, distance: f64) {
    let mut row: Vec<usize> = (0..items.len()).filter(|at| heights[*at] == height).collect();
    row.sort_by(|a, b| items[*a].x.total_cmp(&items[*b].x));
    let mut moved = 0.0;
    for pair in 1..row.len() {
        let least = items[row[pair - 1]].x + distance;
        let item = &mut items[row[pair]];
        moved += (least - item.x).max(0.0);
        item.x = item.x.max(least);
    }
    let Some(first) = row.first() else {
        return;
    };
    let back = (moved / row.len() as f64).min(items[*first].x - distance / 2.0).max(0.0);
    row.iter().for_each(|at| items[*at].x -= back);
}

/// Room between one height and the next: more where edges run far, so that none is flat, but a
/// deep tree stays on a page.
fn rows(items: &[Item], heights: &[u32], top: u32) -> Vec<f64> {
    let mut longest = vec![0.0f64; top as usize];
    for (item, height) in items.iter().zip(heights) {
        if let Kind::Join { left, right } = item.kind {
            let reach = [left, right].map(|side| (items[side].x - item.x).abs());
            let row = &mut longest[*height as usize - 1];
            *row = row.max(reach[0]).max(reach[1]);
        }
    }
    let [least, most] = if top > 12 { [26.0, 60.0] } else { [44.0, 150.0] };
    longest.into_iter().map(|reach| (0.22 * reach).clamp(least, most)).collect()
}
