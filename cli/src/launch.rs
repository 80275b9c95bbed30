//! A kernel and its arguments, ready to be launched any number of times.
//!
//! # Idea
//! Parameters are bound once; each run gets memory of its own with the same contents, so that runs
//! under different schedules, or of different kernels, can be compared.
//! # Invariants
//! - **L1** Buffer `n` is the argument of parameter `n`, in every run: leaves of trees compare.
//! - **L2** A buffer begins at a multiple of [`ALIGN`] bytes, as memory from a GPU's driver does.

use bitstable_ptx::{
    exec::{
        explain::Explained,
        launch::{self, LaunchRequest, Outcome, RunOptions},
        program::Param,
        schedule::Schedule,
    },
    ir::Scalar,
    memory::GlobalMemory,
    symbol::Symbols,
};

use crate::{
    argument::{Argument, Value},
    arguments::LaunchOptions,
    element::ElementType,
    failure::Failure,
    kernel::Kernel,
    streams::counted,
};

/// Alignment of buffers, in bytes.
const ALIGN: u64 = 256;
/// Pointers that Triton appends to the parameters: its scratch memory, and the profiler's.
const SCRATCH: usize = 2;

/// A buffer argument.
pub struct Buffer {
    pub name: String,
    /// Of the parameter.
    pub number: u32,
    pub ty: ElementType,
    pub count: usize,
    /// What it holds before the launch.
    pub bytes: Vec<u8>,
    offset: u32,
}

/// A kernel, its arguments, and how to run it.
pub struct Launch {
    pub kernel: Kernel,
    pub buffers: Vec<Buffer>,
    pub request: LaunchRequest,
    /// The size of dynamic shared memory was nowhere to be found.
    pub shared_unknown: bool,
}

/// What one run left.
pub struct Ran {
    pub outcome: Outcome,
    pub findings: Vec<Explained>,
    /// Address of each buffer.
    pub addresses: Vec<u64>,
    /// Contents of each buffer.
    pub contents: Vec<Vec<u8>>,
}

impl Launch {
    /// Binds arguments to the parameters of a kernel.
    pub fn new(kernel: Kernel, options: &LaunchOptions) -> Result<Self, Failure> {
        let path = || kernel.path.clone();
        let block = options.block.map(|given| given.0).or_else(|| kernel.block());
        let block = block.ok_or_else(|| Failure::NoBlock { path: path() })?;
        let sm = kernel.module().target.sm;
        let mma = options.mma.model(sm).ok_or_else(|| Failure::Option {
            option: "--mma",
            given: "hardware".into(),
            reason: format!("nothing is known about the matrix unit of sm_{sm}"),
        })?;
        let told = kernel.metadata.as_ref().map(|told| told.shared);
        let shared = options.shared.or(told);
        let mut launch = Self {
            request: LaunchRequest {
                grid: options.grid.0,
                block,
                dynamic_shared: shared.unwrap_or(0),
                params: vec![0; kernel.program.param_bytes() as usize],
                options: RunOptions {
                    schedule: options.schedule,
                    races: !options.no_races,
                    strict: options.strict,
                    step_limit: options.step_limit,
                    jobs: options.jobs,
                    mma,
                    ..RunOptions::default()
                },
            },
            shared_unknown: shared.is_none() && kernel.sized_at_launch(),
            kernel,
            buffers: Vec::new(),
        };
        launch.bind(&options.arguments)?;
        Ok(launch)
    }

    fn bind(&mut self, arguments: &[Argument]) -> Result<(), Failure> {
        let params = self.kernel.program.params().to_vec();
        let missing = params.get(arguments.len()..).ok_or_else(|| self.count(arguments.len()))?;
        if missing.len() > SCRATCH || !missing.iter().all(takes_pointer) {
            return Err(self.count(arguments.len()));
        }
        for (number, (argument, param)) in arguments.iter().zip(&params).enumerate() {
            self.argument(number, argument, param)?;
        }
        self.scratch(&params, arguments.len());
        for (at, buffer) in self.buffers.iter().enumerate() {
            if self.buffers[..at].iter().any(|other| other.name == buffer.name) {
                return Err(Failure::Ambiguous(buffer.name.clone()));
            }
        }
        Ok(())
    }

    fn argument(&mut self, number: usize, given: &Argument, param: &Param) -> Result<(), Failure> {
        let wants = describe(param);
        match &given.value {
            Value::Number(text) if !param.pointer => {
                let bits =
                    of_type(param.ty, param.bytes, text).map_err(|reason| given.failure(reason))?;
                self.write(param.offset, &bits.to_le_bytes()[..param.bytes.min(8) as usize]);
            }
            Value::Null if takes_pointer(param) => {}
            Value::Buffer { ty, count, fill } if takes_pointer(param) => {
                let name = given.name.clone().unwrap_or_else(|| format!("arg{number}"));
                let bytes = fill.bytes(*ty, *count).map_err(|reason| given.failure(reason))?;
                let (number, offset) = (number as u32, param.offset);
                let (ty, count) = (*ty, *count);
                self.buffers.push(Buffer { name, number, ty, count, bytes, offset });
            }
            Value::Null | Value::Buffer { .. } => {
                let reason = format!("parameter {number} is {wants}, which takes no buffer");
                return Err(given.failure(reason));
            }
            Value::Scalar { .. } | Value::Number(_) if param.pointer => {
                let reason = format!("parameter {number} is {wants}: give a buffer, or null");
                return Err(given.failure(reason));
            }
            // Numbers for parameters that are no pointers are above.
            Value::Number(_) => {}
            Value::Scalar { ty, bits } => {
                if ty.bytes() != param.bytes as usize
                    || ty.is_float() != accepts_float(param.ty, *ty)
                {
                    return Err(given.failure(format!("parameter {number} is {wants}, not {ty}")));
                }
                self.write(param.offset, &bits.to_le_bytes()[..ty.bytes()]);
            }
        }
        Ok(())
    }

    /// Memory that Triton's launcher would allocate by itself, where it was not given.
    fn scratch(&mut self, params: &[Param], given: usize) {
        let per_cta = self.kernel.metadata.as_ref().map_or(0, |told| told.global_scratch_size);
        let Some(at) = params.len().checked_sub(SCRATCH).filter(|at| *at >= given) else { return };
        if per_cta > 0 {
            let ctas = self.request.grid.iter().map(|&size| size as usize).product::<usize>();
            let count = ctas.saturating_mul(per_cta as usize).min(1 << 32);
            self.buffers.push(Buffer {
                name: "scratch".into(),
                number: at as u32,
                ty: ElementType::U8,
                count,
                bytes: vec![0; count],
                offset: params[at].offset,
            });
        }
    }

    fn count(&self, given: usize) -> Failure {
        let params = self.kernel.program.params();
        let listing: String = params
            .iter()
            .enumerate()
            .map(|(number, param)| format!("\n  parameter {number}: {}", describe(param)))
            .collect();
        Failure::Count {
            path: self.kernel.path.clone(),
            expected: counted(params.len(), "argument"),
            given: if given == 1 { "1 is".into() } else { format!("{given} are") },
            listing,
        }
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) {
        let start = offset as usize;
        if let Some(place) = self.request.params.get_mut(start..start + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// The buffer of this name.
    pub fn buffer(&self, name: &str) -> Result<usize, Failure> {
        self.buffers.iter().position(|buffer| buffer.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
            let known = if known.is_empty() { "no buffers".into() } else { known.join(", ") };
            Failure::UnknownName { name: name.into(), known }
        })
    }

    /// Runs it once, in memory of its own. `mark` gets the addresses of the buffers and makes the
    /// symbols to carry, if any.
    pub fn run(
        &mut self,
        schedule: Schedule,
        mark: impl FnOnce(&[Buffer], &[u64]) -> Option<Symbols>,
    ) -> Result<Ran, Failure> {
        let mut memory = GlobalMemory::default();
        let mut addresses = Vec::with_capacity(self.buffers.len());
        for at in 0..self.buffers.len() {
            let buffer = &self.buffers[at];
            let address = memory.add_owned(&buffer.bytes, ALIGN, &buffer.name);
            self.write(buffer.offset, &address.to_le_bytes());
            addresses.push(address);
        }
        self.request.options.schedule = schedule;
        let symbols = mark(&self.buffers, &addresses);
        let program = &self.kernel.program;
        let outcome = launch::run(program, &self.request, &mut memory, symbols, None)
            .map_err(|error| Failure::Launch { path: self.kernel.path.clone(), error })?;
        let findings = program.explain(&outcome.reports, &memory);
        let contents =
            addresses.iter().map(|&address| memory.bytes(address).unwrap_or_default()).collect();
        Ok(Ran { outcome, findings, addresses, contents })
    }

    /// `kernel `sum`, 4 CTAs of 128 threads`.
    pub fn describe(&self) -> String {
        let sizes = |sizes: [u32; 3]| {
            let most = sizes.iter().rposition(|&size| size != 1).unwrap_or(0);
            let sizes: Vec<String> = sizes[..=most].iter().map(u32::to_string).collect();
            sizes.join("×")
        };
        let (path, name) = (&self.kernel.path, self.kernel.program.name());
        let (grid, block) = (sizes(self.request.grid), sizes(self.request.block));
        let shared = self.request.dynamic_shared;
        format!("{path}: kernel `{name}`, grid {grid}, block {block}, shared memory {shared}")
    }
}

/// Addresses are 64 bits, with `.ptr` or without.
fn takes_pointer(param: &Param) -> bool {
    param.bytes == 8 && (param.pointer || !matches!(param.ty, Scalar::F64))
}

/// A parameter of untyped bits takes what its width allows.
pub fn accepts_float(param: Scalar, given: ElementType) -> bool {
    match param {
        Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 => true,
        Scalar::B8 | Scalar::B16 | Scalar::B32 | Scalar::B64 => given.is_float(),
        _ => false,
    }
}

/// A number of the parameter's own type. PTX does not tell signed from unsigned parameters.
pub fn of_type(param: Scalar, bytes: u32, text: &str) -> Result<u64, String> {
    let float = match param {
        Scalar::F16 => Some(ElementType::F16),
        Scalar::BF16 => Some(ElementType::Bf16),
        Scalar::F32 => Some(ElementType::F32),
        Scalar::F64 => Some(ElementType::F64),
        _ => None,
    };
    if let Some(ty) = float {
        return ty.read(text);
    }
    let (signed, unsigned) = match bytes {
        1 => (ElementType::I8, ElementType::U8),
        2 => (ElementType::I16, ElementType::U16),
        4 => (ElementType::I32, ElementType::U32),
        8 => (ElementType::I64, ElementType::U64),
        bytes => return Err(format!("a parameter of {bytes} bytes takes no number")),
    };
    signed.read(text).or_else(|_| unsigned.read(text))
}

fn describe(param: &Param) -> String {
    let kind = if param.pointer { "a pointer" } else { "a scalar" };
    format!("{kind} (.{}, {} bytes)", param.ty, param.bytes)
}
