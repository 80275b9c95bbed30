//! Drawings: well-formed, complete, and nothing on top of anything else.

mod symbol_trees;

use bitstable_ptx::{
    ir::FloatBinary,
    symbol::{
        Expect, Graph, NodeId, analyse,
        print::Names,
        svg::{Drawing, draw},
    },
};
use roxmltree::{Document, Node};
use symbol_trees::*;

fn drawn(graph: &Graph, root: NodeId) -> String {
    let analysis = analyse(graph, root, Expect::default());
    draw(
        graph,
        &analysis,
        &Drawing { kernel: "row_sum", output: "y[0]", names: named(), most: 256 },
    )
}

/// A canonical sum, two elements a thread.
fn sum(count: u64) -> (Trees, NodeId) {
    let mut trees = Trees::new();
    let x = trees.row(count);
    let mut level: Vec<(NodeId, u32)> = x.iter().zip(0..).map(|(leaf, k)| (*leaf, k / 2)).collect();
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|pair| {
                trees.thread = pair[0].1;
                (trees.join(FloatBinary::Add, pair[0].0, pair[1].0), pair[0].1)
            })
            .collect();
    }
    (trees, level[0].0)
}

fn strided(count: u64) -> (Trees, NodeId) {
    let mut trees = Trees::new();
    let x = trees.row(count);
    let half = x.len() / 2;
    let low: Vec<NodeId> =
        (0..half).map(|k| trees.join(FloatBinary::Add, x[k], x[k + half])).collect();
    let root = trees.count_up(FloatBinary::Add, &low);
    (trees, root)
}

fn chain(count: u64) -> (Trees, NodeId) {
    let mut trees = Trees::new();
    let x = trees.row(count);
    let root = x[1..].iter().fold(x[0], |sum, leaf| trees.join(FloatBinary::Add, sum, *leaf));
    (trees, root)
}

fn value(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|text| text.parse().ok()).expect(name)
}

#[derive(Clone, Copy, Debug)]
struct Box {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Box {
    fn meets(&self, other: &Box) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Boxes of texts, by the widths of DejaVu's characters, and of marks.
fn boxes(document: &Document<'_>) -> (Vec<Box>, Vec<Box>) {
    let (mut texts, mut marks) = (Vec::new(), Vec::new());
    for node in document.descendants() {
        let inside_legend = node.ancestors().any(|parent| parent.has_attribute("transform"));
        match node.tag_name().name() {
            "text" if !matches!(node.attribute("class"), Some("sign" | "word")) => {
                texts.push(text_box(node));
            }
            "circle" if !inside_legend => {
                let (x, y, r) = (value(node, "cx"), value(node, "cy"), value(node, "r"));
                marks.push(Box { left: x - r, top: y - r, right: x + r, bottom: y + r });
            }
            "rect" if !inside_legend && node.attribute("x").is_some() => {
                let (left, top) = (value(node, "x"), value(node, "y"));
                marks.push(Box { left, top, right: left + 10.0, bottom: top + 10.0 });
            }
            _ => {}
        }
    }
    (texts, marks)
}

fn text_box(node: Node<'_, '_>) -> Box {
    let (x, y) = (value(node, "x"), value(node, "y"));
    let (size, em) = match node.attribute("class") {
        Some("leaf") => (12.0, 0.602),
        Some("name") => (18.0, 0.65),
        _ => (13.0, 0.6),
    };
    let length = node.text().unwrap_or("").trim().chars().count() as f64 * size * em;
    let (up, down) = (0.76 * size, 0.24 * size);
    match (node.attribute("transform"), node.attribute("text-anchor")) {
        (Some(_), _) => Box { left: x - up, top: y, right: x + down, bottom: y + length },
        (None, Some("middle")) => {
            Box { left: x - length / 2.0, top: y - up, right: x + length / 2.0, bottom: y + down }
        }
        (None, _) => Box { left: x, top: y - up, right: x + length, bottom: y + down },
    }
}

/// Nothing overlaps, and everything is inside.
fn check(svg: &str) {
    let document = Document::parse(svg).expect("well-formed");
    let (texts, marks) = boxes(&document);
    let all: Vec<&Box> = texts.iter().chain(&marks).collect();
    for (k, a) in all.iter().enumerate() {
        for b in &all[..k] {
            assert!(!a.meets(b), "{a:?} is on {b:?}");
        }
    }
    let root = document.root_element();
    for a in all {
        assert!(a.left >= 0.0 && a.top >= 0.0, "{a:?}");
        assert!(a.right <= value(root, "width") && a.bottom <= value(root, "height"), "{a:?}");
    }
}

fn count(svg: &str, class: &str) -> usize {
    let document = Document::parse(svg).expect("well-formed");
    document.descendants().filter(|node| node.attribute("class") == Some(class)).count()
}

#[test]
fn every_leaf_and_join_is_there_once_and_alone() {
    for bits in 1..=8 {
        let (trees, root) = sum(1 << bits);
        let svg = drawn(&trees.graph, root);
        check(&svg);
        assert_eq!(count(&svg, "element"), 1 << bits);
        assert_eq!(count(&svg, "join"), (1 << bits) - 1);
        assert_eq!(count(&svg, "departing"), 0);
    }
}

#[test]
fn departures_are_red() {
    for count_of in [4, 16, 256] {
        let (trees, root) = strided(count_of);
        let svg = drawn(&trees.graph, root);
        check(&svg);
        assert!(count(&svg, "departing") > count_of as usize / 2, "{count_of}");
        assert!(svg.contains("departs from the canonical tree here"));
    }
    let (trees, root) = chain(20);
    check(&drawn(&trees.graph, root));
}

#[test]
fn large_trees_are_elided() {
    for (trees, root) in [sum(4096), strided(2048), chain(3000)] {
        let svg = drawn(&trees.graph, root);
        check(&svg);
        assert!(count(&svg, "block") > 0);
        assert!(count(&svg, "element") + count(&svg, "block") <= 256);
        assert!(svg.len() < 400_000);
    }
}

#[test]
fn tips_tell_operation_source_and_thread() {
    let (trees, root) = sum(8);
    let svg = drawn(&trees.graph, root);
    let document = Document::parse(&svg).expect("well-formed");
    let join = document.descendants().find(|node| node.attribute("class") == Some("join"));
    let title = join.and_then(|node| node.children().find(|child| child.has_tag_name("title")));
    let text = title.and_then(|node| node.text()).expect("a tip");
    assert_eq!(
        text.trim(),
        "add.rn.f32\nleaves 0 to 7\nlanes of one warp\nsum.py:7\nCTA 0 thread 0"
    );
}

#[test]
fn names_cannot_break_out() {
    let (trees, root) = sum(4);
    let names =
        Names { buffer: &|_| "<b>&\"'\u{1}]]>".into(), source: &|_| Some("</title>".into()) };
    let analysis = analyse(&trees.graph, root, Expect::default());
    let long = "k".repeat(5000);
    for kernel in ["</svg><script>alert(1)</script>\u{0}", long.as_str(), ""] {
        let drawing = Drawing { kernel, output: "y<0>", names, most: 256 };
        let svg = draw(&trees.graph, &analysis, &drawing);
        check(&svg);
        assert!(!svg.contains("<script"));
    }
}

#[test]
fn a_single_leaf_is_drawn() {
    let mut trees = Trees::new();
    let leaf = trees.row(1)[0];
    let svg = drawn(&trees.graph, leaf);
    check(&svg);
    assert_eq!(count(&svg, "element"), 1);
}

#[test]
fn a_small_drawing() {
    let mut trees = Trees::new();
    let x = trees.row(3);
    let low = trees.join(FloatBinary::Add, x[0], x[1]);
    let pad = trees.number(0x8000_0000);
    trees.thread = 33;
    let high = trees.join(FloatBinary::Add, x[2], pad);
    let root = trees.join(FloatBinary::Add, low, high);
    insta::assert_snapshot!(drawn(&trees.graph, root));
}
