//! Where variables live: kernel parameters, shared, local and module variables.
//!
//! # Idea
//! A `.param` variable inside a body, and a device function's own parameters, are local memory:
//! they belong to one thread.

use rustc_hash::FxHashMap;

use super::DecodeError;
use crate::{
    exec::program::{ModuleVariable, Param},
    ir::{Function, Module, Space, Variable},
    memory::space::SHARED_BASE,
};

/// Shared memory a CTA may declare, and local memory a thread may.
const MOST_SHARED: u64 = 1 << 20;
const MOST_LOCAL: u64 = 1 << 20;
/// Memory of a module's variables together.
const MOST_MODULE: u64 = 1 << 28;

/// Where a name leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Offset in the kernel's parameter block.
    Param(u32),
    /// Offset in the thread's local memory.
    Local(u32),
    /// Address in shared memory.
    Shared(u32),
    /// Dynamic shared memory, which begins after all sized variables.
    DynamicShared,
    /// A module variable.
    Module(usize),
}

#[derive(Default)]
pub(super) struct Storage {
    /// By function, or `None` for the module, and name.
    places: FxHashMap<(Option<usize>, String), Place>,
    pub variables: Vec<ModuleVariable>,
    pub shared_bytes: u32,
    pub local_bytes: u32,
    module_bytes: u64,
}

impl Storage {
    /// Gives places to the variables of the module and of the functions that are reached. Sized
    /// shared memory of all of them comes before the dynamic part.
    pub fn enter(&mut self, module: &Module, reached: &[usize]) -> Result<(), DecodeError> {
        for variable in &module.variables {
            self.variable(None, variable)?;
        }
        for &index in reached {
            let function = &module.functions[index];
            if function.entry {
                let (params, _) = parameters(function)?;
                for param in params {
                    self.places.insert((Some(index), param.name), Place::Param(param.offset));
                }
            } else {
                for variable in function.params.iter().chain(&function.returns) {
                    self.variable(Some(index), variable)?;
                }
            }
            for variable in function.body.iter().flat_map(|body| &body.variables) {
                self.variable(Some(index), variable)?;
            }
        }
        Ok(())
    }

    /// Where a name leads, seen from a function.
    pub fn find(&self, function: usize, name: &str) -> Option<Place> {
        let key = |scope| self.places.get(&(scope, name.to_owned())).copied();
        key(Some(function)).or_else(|| key(None))
    }

    fn variable(&mut self, scope: Option<usize>, variable: &Variable) -> Result<(), DecodeError> {
        let (bytes, align) = size(variable)?;
        let place = match variable.space {
            Space::Shared | Space::SharedCluster if variable.elements == Some(0) => {
                Place::DynamicShared
            }
            Space::Shared | Space::SharedCluster => {
                let offset = reserve(&mut self.shared_bytes, bytes, align, MOST_SHARED, variable)?;
                Place::Shared(SHARED_BASE + offset)
            }
            Space::Local | Space::Param => {
                let offset = reserve(&mut self.local_bytes, bytes, align, MOST_LOCAL, variable)?;
                Place::Local(offset)
            }
            Space::Global | Space::Const | Space::Generic => {
                self.module_bytes += bytes;
                if self.module_bytes > MOST_MODULE {
                    return Err(too_large(
                        variable,
                        format!("more than {MOST_MODULE} bytes in all"),
                    ));
                }
                let mut initial = variable.initial.clone();
                initial.resize(bytes as usize, 0);
                self.variables.push(ModuleVariable {
                    name: variable.name.clone(),
                    bytes: initial,
                    align,
                });
                Place::Module(self.variables.len() - 1)
            }
        };
        self.places.insert((scope, variable.name.clone()), place);
        Ok(())
    }
}

fn reserve(
    used: &mut u32,
    bytes: u64,
    align: u32,
    most: u64,
    variable: &Variable,
) -> Result<u32, DecodeError> {
    let start = u64::from(*used).next_multiple_of(u64::from(align));
    if start + bytes > most {
        return Err(too_large(variable, format!("more than {most} bytes in .{}", variable.space)));
    }
    *used = (start + bytes) as u32;
    Ok(start as u32)
}

/// Bytes and alignment of a variable.
fn size(variable: &Variable) -> Result<(u64, u32), DecodeError> {
    let element = u64::from(variable.ty.bytes()) * u64::from(variable.vector.max(1));
    let bytes = element.checked_mul(variable.elements.unwrap_or(1));
    let bytes = bytes
        .filter(|bytes| *bytes <= MOST_MODULE)
        .ok_or_else(|| too_large(variable, format!("more than {MOST_MODULE} bytes")))?;
    let align = variable.align.unwrap_or(element as u32);
    if !align.is_power_of_two() || align > 1 << 16 {
        return Err(too_large(variable, format!("alignment {align}")));
    }
    Ok((bytes, align))
}

fn too_large(variable: &Variable, reason: String) -> DecodeError {
    DecodeError::TooLarge { at: variable.at, name: variable.name.clone(), reason }
}

/// A kernel's parameters in the block that a launch passes, and the block's size.
pub(super) fn parameters(function: &Function) -> Result<(Vec<Param>, u32), DecodeError> {
    let mut used = 0;
    let mut params = Vec::with_capacity(function.params.len());
    for variable in &function.params {
        let (bytes, align) = size(variable)?;
        let offset = reserve(&mut used, bytes, align, 1 << 16, variable)?;
        params.push(Param {
            name: variable.name.clone(),
            ty: variable.ty,
            offset,
            bytes: bytes as u32,
            pointer: variable.pointer.is_some(),
        });
    }
    Ok((params, used))
}
