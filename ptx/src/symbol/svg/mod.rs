//! A tree as a drawing.
//!
//! # Idea
//! Leaves stand in index order along the bottom, and each join above what it covers, coloured by how
//! far the threads were apart whose values met there. What departs from the canonical tree is red.
//! Pointing at a mark tells the operation, the elements, the source line and the thread.
//! # Invariants
//! - **D1** The text is well-formed whatever the names are.
//! - **D2** The size of a drawing is bounded: [`Drawing::most`].
//! # Held by
//! D1: the `svg` crate escapes, [`clean`] drops what XML forbids. D2: `layout.rs`.

mod layout;

use ::svg::{
    Document,
    node::element::{Circle, Group, Line, Rectangle, Style, Text, Title},
};

pub use layout::HIGHEST;
use layout::{EM, Item, Kind, LABEL, Layout, layout, radius};

use super::{
    explain::explain,
    graph::{Graph, Meeting, Node},
    print::{Names, expression, number, sign},
    verdict::{Analysis, Verdict},
};

/// What a drawing says beside the tree.
#[derive(Clone, Copy)]
pub struct Drawing<'a> {
    pub kernel: &'a str,
    /// The output element, `y[3]`.
    pub output: &'a str,
    pub names: Names<'a>,
    /// Most leaves, padding and elided subtrees along the bottom.
    pub most: usize,
}

const MARGIN: f64 = 28.0;
/// Narrowest drawing: its text must fit.
const NARROWEST: f64 = 720.0;
const LINE: f64 = 20.0;

const STYLE: &str = "
text { font-family: 'DejaVu Sans', Helvetica, Arial, sans-serif; font-size: 13px; fill: #222 }
.name { font-size: 18px; font-weight: bold }
.leaf { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12px }
.sign { font-size: 14px; text-anchor: middle }
.word { font-size: 9px; text-anchor: middle }
.edge { stroke: #8a8a8a; stroke-width: 1.2 }
.departing { stroke: #c8102e; stroke-width: 2.4 }
.crowded { stroke: #c8102e; stroke-width: 0.8; stroke-opacity: 0.45 }
.good { fill: #1b6e35; font-weight: bold }
.bad { fill: #c8102e; font-weight: bold }
.open { fill: #6a4a00; font-weight: bold }
";

fn colour(meeting: Meeting) -> &'static str {
    match meeting {
        Meeting::Thread => "#7cc4ee",
        Meeting::Warp => "#f2b134",
        Meeting::Cta => "#3fbf8f",
        Meeting::Grid => "#d58fbb",
    }
}

const MEETINGS: [Meeting; 4] = [Meeting::Thread, Meeting::Warp, Meeting::Cta, Meeting::Grid];

/// The drawing, as SVG text.
pub fn draw(graph: &Graph, analysis: &Analysis, drawing: &Drawing<'_>) -> String {
    let tree = layout(graph, analysis, drawing.names, drawing.most);
    let width = (tree.width + 2.0 * MARGIN).max(NARROWEST);
    let (header, below) = header(graph, analysis, drawing, width, &tree);
    let height = below + tree.height + MARGIN;
    let painter = Painter {
        graph,
        names: drawing.names,
        dx: (width - tree.width) / 2.0,
        dy: below,
        tree: &tree,
    };
    let (w, h) = (pixels(width), pixels(height));
    let document = Document::new()
        .set("viewBox", format!("0 0 {w} {h}"))
        .set("width", w.clone())
        .set("height", h.clone())
        .set("role", "img")
        .add(Title::new(clean(&format!("{}: {}", drawing.kernel, drawing.output))))
        .add(Style::new(STYLE))
        .add(Rectangle::new().set("width", w).set("height", h).set("fill", "white"))
        .add(header)
        .add(painter.edges())
        .add(painter.marks());
    document.to_string()
}

/// Coordinates have two decimals at most, so that drawings compare as text.
fn pixels(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Without the control characters that XML forbids.
fn clean(text: &str) -> String {
    let allowed = |c: char| !c.is_control() || c == '\n' || c == '\t';
    text.chars()
        .map(|c| if allowed(c) && c != '\u{FFFE}' && c != '\u{FFFF}' { c } else { '\u{FFFD}' })
        .collect()
}

fn text(class: &str, x: f64, y: f64, content: &str) -> Text {
    Text::new(clean(content)).set("class", class).set("x", pixels(x)).set("y", pixels(y))
}

/// Title, what is drawn, verdict and legend; and the height they take.
fn header(
    graph: &Graph,
    analysis: &Analysis,
    drawing: &Drawing<'_>,
    width: f64,
    tree: &Layout,
) -> (Group, f64) {
    let mut y = MARGIN + 14.0;
    // Bold text of this size takes up to 12 pixels a character.
    let title = shortened(drawing.kernel, ((width - 2.0 * MARGIN) / 12.5) as usize);
    let mut group = Group::new().add(text("name", MARGIN, y, &title));
    y += LINE + 4.0;
    let combine = analysis.tree.combine.map(|label| graph.label(label).name());
    let leaves = analysis.tree.leaves().len();
    let facts = format!(
        "output {} · {} · {leaves} {} · depth {}",
        drawing.output,
        combine.as_deref().unwrap_or("nothing combined"),
        if leaves == 1 { "leaf" } else { "leaves" },
        analysis.tree.depth()
    );
    let (class, said) = match &analysis.verdict {
        Verdict::Canonical(_) => ("good", explain(graph, analysis, drawing.names)),
        Verdict::Departs(_) => ("bad", explain(graph, analysis, drawing.names)),
        Verdict::Unknown(_) => ("open", explain(graph, analysis, drawing.names)),
    };
    let columns = ((width - 2.0 * MARGIN) / 8.4) as usize;
    for (class, paragraph) in [("fact", facts), (class, said)] {
        for line in wrapped(&paragraph, columns) {
            group = group.add(text(class, MARGIN, y, &line));
            y += LINE;
        }
    }
    let (legend, y) = legend(graph, analysis, tree, width, y + 4.0);
    (group.add(legend), y + LINE)
}

fn legend(
    graph: &Graph,
    analysis: &Analysis,
    tree: &Layout,
    width: f64,
    mut y: f64,
) -> (Group, f64) {
    let joins = analysis.tree.entries.iter().filter(|entry| entry.join.is_some());
    let mut counts = [0u64; 4];
    for meeting in joins.filter_map(|entry| graph.maker(entry.node)) {
        counts[meeting.meeting as usize] += 1;
    }
    let mut signs: Vec<(Group, String)> = Vec::new();
    for (meeting, count) in MEETINGS.into_iter().zip(counts).filter(|(_, count)| *count > 0) {
        let mark = Circle::new().set("r", 6).set("fill", colour(meeting)).set("stroke", "#444");
        signs.push((Group::new().add(mark), format!("{} ({count})", meeting.describe())));
    }
    if tree.items.iter().any(|item| item.kind == Kind::Padding) {
        let mark = Rectangle::new().set("x", -5).set("y", -5).set("width", 10).set("height", 10);
        signs.push((
            Group::new().add(mark.set("fill", "#ddd").set("stroke", "#777")),
            "padding or number".into(),
        ));
    }
    if tree.items.iter().any(|item| item.departs) {
        let mark = Circle::new().set("r", 6).set("fill", "none").set("class", "departing");
        signs.push((Group::new().add(mark), "departs from the canonical tree".into()));
    }
    let (mut group, mut x) = (Group::new(), MARGIN + 6.0);
    for (mark, said) in signs {
        let takes = 16.0 + said.chars().count() as f64 * 8.0 + 16.0;
        if x + takes > width - MARGIN && x > MARGIN + 6.0 {
            (x, y) = (MARGIN + 6.0, y + LINE);
        }
        let at = format!("translate({} {})", pixels(x), pixels(y - 4.0));
        group = group.add(mark.set("transform", at)).add(text("fact", x + 12.0, y, &said));
        x += takes;
    }
    (group, y)
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Lines of at most `columns` characters, broken at spaces where there are any.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let last = lines.len() - 1;
            let used = lines[last].chars().count();
            let space = usize::from(used > 0);
            if used + space + word.len() <= columns {
                lines[last].push_str(if space == 1 { " " } else { "" });
                lines[last].extend(&word);
                break;
            }
            if used > 0 {
                lines.push(String::new());
                continue;
            }
            let rest = word.split_off(columns.clamp(1, word.len().max(1)));
            lines[last].extend(&word);
            lines.push(String::new());
            word = rest;
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

struct Painter<'a> {
    graph: &'a Graph,
    names: Names<'a>,
    dx: f64,
    dy: f64,
    tree: &'a Layout,
}

impl Painter<'_> {
    fn at(&self, item: &Item) -> (f64, f64) {
        (item.x + self.dx, item.y + self.dy)
    }

    fn edges(&self) -> Group {
        let mut group = Group::new();
        // So many thick lines would be a red area.
        let many = self.tree.items.iter().filter(|item| item.departs).count() > 16;
        let departing = if many { "crowded" } else { "departing" };
        // Red edges last, so that they lie on top.
        for red in [false, true] {
            for item in self.tree.items.iter().filter(|item| item.departs == red) {
                let Kind::Join { left, right } = item.kind else {
                    continue;
                };
                let (x, y) = self.at(item);
                for side in [left, right] {
                    let (to_x, to_y) = self.at(&self.tree.items[side]);
                    let line = Line::new()
                        .set("class", if red { departing } else { "edge" })
                        .set("x1", pixels(x))
                        .set("y1", pixels(y))
                        .set("x2", pixels(to_x))
                        .set("y2", pixels(to_y));
                    group = group.add(line);
                }
            }
        }
        group
    }

    fn marks(&self) -> Group {
        let mut group = Group::new();
        for item in &self.tree.items {
            let tip = Title::new(clean(&self.tip(item)));
            let mark = match item.kind {
                Kind::Join { .. } => self.join(item),
                Kind::Leaf => self.leaf(item),
                Kind::Padding | Kind::Elided => self.block(item),
            };
            group = group.add(mark.add(tip));
        }
        group
    }

    fn join(&self, item: &Item) -> Group {
        let (x, y) = self.at(item);
        let size = radius(self.tree.step);
        let fill = self.graph.maker(item.node).map_or("#eee", |maker| colour(maker.meeting));
        let mut mark = Circle::new()
            .set("cx", pixels(x))
            .set("cy", pixels(y))
            .set("r", pixels(size))
            .set("fill", fill);
        mark =
            if item.departs { mark.set("class", "departing") } else { mark.set("stroke", "#444") };
        let mut group = Group::new().set("class", "join").add(mark);
        if size > 8.0
            && let Some(label) = self.graph.label_of(item.node)
        {
            let (class, sign, lower) = match sign(label) {
                Some("*") => ("sign", "×".to_string(), 4.8),
                Some("-") => ("sign", "−".to_string(), 4.8),
                Some(sign) => ("sign", sign.to_string(), 4.8),
                None => ("word", label.name().chars().take(3).collect(), 3.2),
            };
            group = group.add(text(class, x, y + lower, &sign));
        }
        group
    }

    fn leaf(&self, item: &Item) -> Group {
        let (x, y) = self.at(item);
        let mark = Circle::new()
            .set("cx", pixels(x))
            .set("cy", pixels(y))
            .set("r", "4.5")
            .set("fill", "white")
            .set("stroke", "#444");
        Group::new().set("class", "element").add(mark).add(self.label(item))
    }

    fn block(&self, item: &Item) -> Group {
        let (x, y) = self.at(item);
        let fill = if item.kind == Kind::Padding { "#ddd" } else { "#fff3d6" };
        let mark = Rectangle::new()
            .set("x", pixels(x - 5.0))
            .set("y", pixels(y - 5.0))
            .set("width", "10")
            .set("height", "10")
            .set("fill", fill)
            .set("stroke", if item.departs { "#c8102e" } else { "#777" })
            .set("stroke-width", if item.departs { "2.4" } else { "1" });
        Group::new().set("class", "block").add(mark).add(self.label(item))
    }

    fn label(&self, item: &Item) -> Text {
        let (x, y) = self.at(item);
        let below = y + 12.0;
        if self.tree.upright {
            let (x, y) = (x + LABEL * 0.35, below);
            let turn = format!("rotate(-90 {} {})", pixels(x), pixels(y));
            return text("leaf", x, y, &item.label)
                .set("text-anchor", "end")
                .set("transform", turn)
                .set(
                    "textLength",
                    pixels(item.label.chars().count() as f64 * LABEL * (EM - 0.01)),
                );
        }
        text("leaf", x, below + LABEL - 2.0, &item.label).set("text-anchor", "middle")
    }

    /// What pointing at a mark tells.
    fn tip(&self, item: &Item) -> String {
        let mut lines = Vec::new();
        match self.graph.node(item.node) {
            Node::Constant { bits, ty } => lines.push(format!("{} ({ty})", number(bits, ty))),
            Node::Leaf(_) => lines.push(expression(self.graph, item.node, self.names, 1)),
            Node::Apply { label, .. } => {
                let shown = matches!(item.kind, Kind::Leaf | Kind::Padding);
                lines.push(if shown {
                    expression(self.graph, item.node, self.names, 12)
                } else {
                    self.graph.label(label).name()
                });
            }
        }
        if let Some([first, last]) = item.covers {
            lines.push(if first == last {
                format!("leaf {first}")
            } else {
                format!("leaves {first} to {last}")
            });
        }
        if item.departs {
            let inside = if item.kind == Kind::Elided { "inside" } else { "here" };
            lines.push(format!("departs from the canonical tree {inside}"));
        }
        if let Some(maker) = self.graph.maker(item.node) {
            if matches!(item.kind, Kind::Join { .. }) {
                lines.push(maker.meeting.describe().into());
            }
            if let Some(source) = (self.names.source)(maker.site.pc) {
                lines.push(source);
            }
            lines.push(maker.site.thread.to_string());
        }
        lines.join("\n")
    }
}
