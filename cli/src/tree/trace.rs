//! One run with expressions, and the outputs it left.

use bitstable_ptx::{
    report::{Site, Thread},
    symbol::{Area, Leaf, Node, NodeId, Options, Place, Symbols, print::Names},
};

use crate::{
    arguments::{Selection, TreeOptions},
    failure::Failure,
    launch::{Buffer, Launch, Ran},
    streams::counted,
};

/// A traced run.
pub struct Trace {
    pub launch: Launch,
    pub ran: Ran,
    pub symbols: Symbols,
    /// In the order asked for; by default of buffers and elements.
    pub outputs: Vec<Output>,
    /// Elements asked for that hold numbers: no input reached them.
    pub numbers: usize,
}

/// An element that an expression was stored to.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Place among the launch's buffers.
    pub buffer: usize,
    pub element: usize,
    pub node: NodeId,
}

impl Trace {
    /// Runs a launch with the leaves asked for.
    pub fn of(mut launch: Launch, options: &TreeOptions) -> Result<Self, Failure> {
        let leaves = leaves(&launch, &options.leaves)?;
        for wanted in &options.output {
            let buffer = &launch.buffers[launch.buffer(&wanted.name)?];
            if wanted.number.is_some_and(|element| element >= buffer.count) {
                return Err(Failure::Option {
                    option: "--output",
                    given: format!("{}:{}", wanted.name, wanted.number.unwrap_or(0)),
                    reason: format!("it has {}", counted(buffer.count, "element")),
                });
            }
        }
        let limits = Options { nodes: options.nodes, ..Options::default() };
        let mut ran = launch.run(options.launch.schedule, |buffers, addresses| {
            let mut symbols = Symbols::new(limits);
            for &at in &leaves {
                let buffer = &buffers[at];
                let (bytes, ty) = (buffer.bytes.len() as u64, buffer.ty.scalar());
                symbols.mark_leaves(global(addresses[at]), bytes, ty, buffer.number);
            }
            Some(symbols)
        })?;
        let path = || launch.kernel.path.clone();
        if let Some(limit) = ran.outcome.symbol_limit {
            return Err(Failure::Limit { path: path(), limit });
        }
        let mut symbols = ran.outcome.symbols.take().ok_or(Failure::NoOutput)?;
        let (outputs, numbers) = outputs(&launch.buffers, &ran, &mut symbols, &options.output)
            .map_err(|limit| Failure::Limit { path: path(), limit })?;
        if outputs.is_empty() && ran.outcome.reports.errors() == 0 {
            return Err(Failure::NoOutput);
        }
        Ok(Self { launch, ran, symbols, outputs, numbers })
    }

    /// `out[3]`.
    pub fn name(&self, output: &Output) -> String {
        format!("{}[{}]", self.launch.buffers[output.buffer].name, output.element)
    }

    pub fn naming(&self) -> Naming<'_> {
        Naming(&self.launch)
    }
}

/// What buffers and source lines of a launch are called.
#[derive(Clone, Copy)]
pub struct Naming<'a>(&'a Launch);

impl Naming<'_> {
    /// Lends the names.
    pub fn with<T>(self, use_them: impl FnOnce(Names<'_>) -> T) -> T {
        let buffer = |number: u32| {
            let found = self.0.buffers.iter().find(|buffer| buffer.number == number);
            found.map_or_else(|| format!("arg{number}"), |buffer| buffer.name.clone())
        };
        let source = |pc: u32| self.source(pc);
        use_them(Names { buffer: &buffer, source: &source })
    }

    /// File name and line of a step.
    pub fn source(self, pc: u32) -> Option<String> {
        let site = Site { pc, thread: Thread { cta: 0, thread: 0 } };
        let source = self.0.kernel.program.place("", site).source?.to_string();
        Some(source.rsplit('/').next().unwrap_or(&source).to_owned())
    }
}

fn global(address: u64) -> Place {
    Place { area: Area::GLOBAL, address }
}

/// Which buffers' elements are leaves, by their places.
fn leaves(launch: &Launch, named: &[String]) -> Result<Vec<usize>, Failure> {
    if !named.is_empty() {
        return named.iter().map(|name| launch.buffer(name)).collect();
    }
    let all = 0..launch.buffers.len();
    let floats: Vec<usize> = all.clone().filter(|&at| launch.buffers[at].ty.is_float()).collect();
    Ok(if floats.is_empty() { all.collect() } else { floats })
}

type Found = (Vec<Output>, usize);

/// The expressions that memory holds: where one was stored, or everywhere asked for.
fn outputs(
    buffers: &[Buffer],
    ran: &Ran,
    symbols: &mut Symbols,
    wanted: &[Selection],
) -> Result<Found, bitstable_ptx::symbol::Limit> {
    let (mut out, mut numbers) = (Vec::new(), 0);
    let mut look = |at: usize, element: usize| {
        let (buffer, contents) = (&buffers[at], &ran.contents[at]);
        let offset = (element * buffer.ty.bytes()) as u64;
        let place = global(ran.addresses[at] + offset);
        let node = symbols.output(place, buffer.ty.scalar(), buffer.ty.at(contents, element))?;
        match node {
            None => numbers += usize::from(!wanted.is_empty()),
            Some(node) => {
                let own = Leaf { buffer: buffer.number, offset, ty: buffer.ty.scalar() };
                if symbols.graph().node(node) != Node::Leaf(own) {
                    out.push(Output { buffer: at, element, node });
                } else {
                    numbers += usize::from(!wanted.is_empty());
                }
            }
        }
        Ok(())
    };
    for (at, buffer) in buffers.iter().enumerate().filter(|_| wanted.is_empty()) {
        (0..buffer.count).try_for_each(|element| look(at, element))?;
    }
    for selection in wanted {
        let found = buffers.iter().position(|buffer| buffer.name == selection.name);
        let Some(at) = found else { continue };
        match selection.number {
            Some(element) => look(at, element)?,
            None => (0..buffers[at].count).try_for_each(|element| look(at, element))?,
        }
    }
    Ok((out, numbers))
}
