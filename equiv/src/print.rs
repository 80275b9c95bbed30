//! Terms for people.

use std::fmt::Write;

use crate::{
    graph::{Graph, Node},
    label::Labels,
    outputs::Address,
    term::Body,
};

pub(crate) struct Printer<'a> {
    pub graph: &'a Graph,
    pub labels: &'a Labels,
}

/// Operations within operations that are written out.
const DEEPEST: u32 = 4;

impl Printer<'_> {
    pub fn address(&self, address: Address) -> String {
        let base = self.sum(address.base, address.offset);
        format!("[{base}]")
    }

    pub fn term(&self, body: Body) -> String {
        let mut out = String::new();
        self.write(&mut out, body, DEEPEST);
        out
    }

    fn write(&self, out: &mut String, body: Body, depth: u32) {
        let Some(node) = self.graph.get(body) else {
            out.push('?');
            return;
        };
        match node {
            Node::Constant { bits, bytes: 0 } => {
                out.push_str(if *bits == 0 { "false" } else { "true" });
            }
            Node::Constant { bits, bytes: 4 } => {
                // The bits may be a float's or an integer's; the shorter is what was meant.
                let float = f32::from_bits(*bits as u32);
                let text =
                    if *bits < 4096 { bits.to_string() } else { format!("{float:?}:{bits:#x}") };
                out.push_str(&text);
            }
            Node::Constant { bits, .. } => {
                let _ = write!(out, "{bits:#x}");
            }
            Node::Symbol(name) => out.push_str(name),
            Node::Linear { .. } => out.push_str(&self.sum(body, 0)),
            Node::Offset { base, constant } => out.push_str(&self.sum(*base, *constant)),
            Node::Load(base, offset, bytes) => {
                let _ = write!(out, "load{}[{}]", 8 * bytes, self.sum(*base, i64::from(*offset)));
            }
            Node::Slice(of, offset, bytes) => {
                self.write(out, *of, depth);
                let start = offset & 0xffff;
                let _ = write!(out, ".bytes({start}..{})", start + i32::from(*bytes));
            }
            Node::Flipped(of) => self.call(out, "-", &[*of], depth),
            Node::Apply { label, args } => self.call(out, self.labels.name(*label), args, depth),
            Node::Join { label, parts } => {
                let members = self.graph.members(*label, parts);
                let members: Vec<Body> = members
                    .into_iter()
                    .map(|body| match self.graph.get(body) {
                        Some(Node::Member { of, .. }) => *of,
                        Some(_) | None => body,
                    })
                    .collect();
                self.call(out, self.labels.name(*label), &members, depth);
            }
            Node::Member { of, .. } => self.write(out, *of, depth),
            Node::Select { predicate, arms } => {
                self.call(out, "select", &[*predicate, arms[0], arms[1]], depth);
            }
            Node::Pack { parts, .. } => self.call(out, "pack", parts, depth),
            Node::Other { what, args } => self.call(out, what, args, depth),
        }
    }

    fn call(&self, out: &mut String, name: &str, args: &[Body], depth: u32) {
        let _ = write!(out, "{name}(");
        if depth == 0 {
            out.push_str("…)");
            return;
        }
        for (at, arg) in args.iter().enumerate().take(8) {
            if at > 0 {
                out.push_str(", ");
            }
            self.write(out, *arg, depth - 1);
        }
        if args.len() > 8 {
            let _ = write!(out, ", … {} in all", args.len());
        }
        out.push(')');
    }

    /// A linear form, `parameter 0 + 64*ctaid.0 + 12`.
    fn sum(&self, base: Body, constant: i64) -> String {
        let mut parts = Vec::new();
        let mut total = constant;
        match self.graph.get(base) {
            Some(Node::Linear { terms, constant }) => {
                total += constant;
                for (factors, coefficient) in terms {
                    let names: Vec<String> = factors.iter().map(|body| self.term(*body)).collect();
                    let product = names.join("*");
                    parts.push(match coefficient {
                        1 => product,
                        other => format!("{other}*{product}"),
                    });
                }
                parts.sort_by_key(|part| !part.starts_with("parameter"));
            }
            Some(Node::Offset { base, constant }) => {
                return self.sum(*base, total + constant);
            }
            Some(_) => parts.push(self.term(base)),
            None => parts.push("?".into()),
        }
        if total != 0 || parts.is_empty() {
            parts.push(total.to_string());
        }
        parts.join(" + ").replace("+ -", "- ")
    }
}
