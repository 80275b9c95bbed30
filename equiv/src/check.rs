//! One kernel's signature.

use std::rc::Rc;

use bitstable_ptx::ir::{Function, Module};

use crate::{
    flow::Flow,
    launch::Launch,
    signature::{Digest, Obstacle, Place, Signature},
    term::{Mixer, seed},
    walk::{Walk, World},
};

/// Input that is no kernel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InputError {
    #[error("there is no entry function")]
    NoEntry,
    #[error("there are several entry functions: name one of {0}")]
    SeveralEntries(String),
    #[error("there is no entry function `{0}`")]
    NoSuchEntry(String),
    #[error("`{0}` does not say how many threads it has (.reqntid); give the block")]
    NoThreads(String),
    #[error("a CTA of {0} threads: a kernel has 1 to 1024")]
    Threads(u64),
    #[error("a grid of {0} CTAs is more than are walked; leave the grid out")]
    Grid(u64),
}

/// CTAs that are walked one by one when the grid is given.
const MOST_CTAS: u64 = 1 << 16;

/// Walks one kernel.
///
/// # Errors
/// When the input is no kernel that can be launched. What a kernel does that is not understood is
/// no error: the signature then has an [`Obstacle`], and its digest is that of the kernel's text.
pub fn signature(
    module: &Module,
    entry: Option<&str>,
    launch: &Launch,
) -> Result<Signature, InputError> {
    let mut world = World::default();
    walk(module, entry, launch, &mut world).map(|walked| walked.signature)
}

/// A kernel that was walked.
pub(crate) struct Walked {
    pub signature: Signature,
    pub outputs: crate::outputs::Outputs,
}

pub(crate) fn walk(
    module: &Module,
    entry: Option<&str>,
    launch: &Launch,
    world: &mut World,
) -> Result<Walked, InputError> {
    let function = find(module, entry)?;
    let block = block(function, launch)?;
    let ctas = match launch.grid {
        None => None,
        Some(grid) => {
            let count = grid.iter().map(|n| u64::from(*n)).product();
            if count > MOST_CTAS {
                return Err(InputError::Grid(count));
            }
            Some(grid)
        }
    };
    let (Some(body), text) = (&function.body, || text(module, function, launch)) else {
        return Err(InputError::NoEntry);
    };
    let failed = |obstacle: Obstacle| Walked {
        signature: Signature {
            digest: text(),
            contractions: Vec::new(),
            writes: None,
            obstacle: Some(obstacle),
        },
        outputs: crate::outputs::Outputs::default(),
    };
    let flow = match Flow::of(body) {
        Ok(flow) => Rc::new(flow),
        Err(unfollowed) => {
            let instruction = &body.instructions[unfollowed.0];
            let place = Place { line: instruction.at.line, source: instruction.source };
            let what = "a jump through a table".to_owned();
            return Ok(failed(Obstacle { what, place }));
        }
    };
    let mut walk = Walk::new(module, function, body, flow, (launch, block), world);
    let ran = match ctas {
        None => walk.run(None),
        Some([x, y, z]) => (0..z)
            .flat_map(|k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])))
            .try_for_each(|cta| walk.run(Some(cta))),
    };
    if let Err(obstacle) = ran {
        return Ok(failed(*obstacle));
    }
    let digest = Digest(walk.outputs.digest().digest());
    let contractions = std::mem::take(&mut walk.contractions);
    let writes = walk.outputs.writes();
    let signature = Signature { digest, contractions, writes, obstacle: None };
    Ok(Walked { signature, outputs: std::mem::take(&mut walk.outputs) })
}

pub(crate) fn find<'m>(
    module: &'m Module,
    entry: Option<&str>,
) -> Result<&'m Function, InputError> {
    let entries = || module.functions.iter().filter(|f| f.entry && f.body.is_some());
    if let Some(name) = entry {
        let found = entries().find(|function| function.name == name);
        return found.ok_or_else(|| InputError::NoSuchEntry(name.into()));
    }
    let mut all = entries();
    match (all.next(), all.next()) {
        (None, _) => Err(InputError::NoEntry),
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => {
            let names: Vec<&str> = entries().map(|f| f.name.as_str()).collect();
            Err(InputError::SeveralEntries(names.join(", ")))
        }
    }
}

pub(crate) fn block(function: &Function, launch: &Launch) -> Result<[u32; 3], InputError> {
    let told = function
        .directive("reqntid")
        .map(|numbers| std::array::from_fn(|axis| numbers.get(axis).copied().unwrap_or(1)));
    let Some(block) = launch.block.or(told) else {
        return Err(InputError::NoThreads(function.name.clone()));
    };
    let threads = block.iter().map(|n| u64::from(*n)).product();
    if threads == 0 || threads > 1024 {
        return Err(InputError::Threads(threads));
    }
    Ok(block)
}

/// A name for a kernel's own text and launch, positions left out.
fn text(module: &Module, function: &Function, launch: &Launch) -> Digest {
    let mut mixer = Mixer::new(seed::TEXT).word(u64::from(module.target.sm));
    let mut note = |text: String| mixer = mixer.bytes(text.as_bytes());
    note(format!("{launch:?} {:?}", module.target));
    module.variables.iter().for_each(|variable| note(format!("{variable:?}")));
    for other in &module.functions {
        // The entry and whatever it may call.
        if other.entry && other.name != function.name {
            continue;
        }
        // An entry's name is nothing that it does, and its parameters are called by number.
        note(if other.entry { "entry".to_owned() } else { other.name.clone() });
        note(format!("{:?}", other.directives));
        let sizes = other.params.iter().map(|p| (p.ty, p.vector, p.elements, p.align));
        note(format!("{:?}", sizes.collect::<Vec<_>>()));
        let Some(body) = &other.body else { continue };
        note(format!("{:?}", body.variables));
        note(format!("{:?}", body.registers.iter().map(|r| r.ty).collect::<Vec<_>>()));
        for instruction in &body.instructions {
            let printed = bitstable_ptx::syntax::print_instruction(body, instruction);
            note(printed.replace(&format!("{}_param_", other.name), "param "));
        }
        note(format!("{:?}", body.labels.iter().map(|label| label.at).collect::<Vec<_>>()));
        let tables = body.jump_tables.iter().map(|table| &table.targets);
        note(format!("{:?}", tables.collect::<Vec<_>>()));
    }
    Digest(mixer.finish().digest())
}
