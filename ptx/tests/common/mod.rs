//! A small laboratory: kernels from `programs/`, buffers, launches, and what was found.
//!
//! # Idea
//! A text may hold planted faults. A line `good //! name: bad` is `good`, and `bad` in the variant
//! `name`; a line `//! name: bad` alone is nothing otherwise. A comment `// @mark` names a line, so
//! that a test can say where a finding must point.

#![allow(dead_code, reason = "each test file uses a part")]

use bitstable_ptx::{
    exec::{LaunchRequest, Outcome, Program, RunOptions, Schedule, explain::Explained, run},
    memory::GlobalMemory,
    report::Severity,
    syntax::parse,
};

/// A kernel, decoded, and its text.
pub struct Kernel {
    pub program: Program,
    text: String,
}

impl Kernel {
    /// The kernel `entry` of a text without its faults.
    pub fn new(text: &str, entry: &str) -> Self {
        Self::variant(text, entry, &[])
    }

    /// The kernel with some of the faults planted.
    pub fn variant(text: &str, entry: &str, faults: &[&str]) -> Self {
        let text = planted(text, faults);
        let module = parse(&text).unwrap_or_else(|error| panic!("{entry}: {error}"));
        let program = Program::new(&module, Some(entry));
        let program = program.unwrap_or_else(|error| panic!("{entry}: {error}"));
        Self { program, text }
    }

    /// The number of the kernel's line that carries `// @mark`.
    pub fn line(&self, mark: &str) -> u32 {
        let wanted = format!("// @{mark}");
        let start = format!(".entry {}(", self.program.name());
        let mut lines = (1..).zip(self.text.lines()).skip_while(|(_, line)| !line.contains(&start));
        let first = lines.next();
        let own = lines.take_while(|(_, line)| !line.contains(".entry "));
        let found: Vec<_> = first
            .into_iter()
            .chain(own)
            .filter(|(_, line)| line.trim_end().ends_with(&wanted))
            .map(|(number, _)| number)
            .collect();
        assert_eq!(found.len(), 1, "lines with {wanted}");
        found[0]
    }
}

/// A text with some of its faults planted; lines keep their numbers.
pub fn planted(text: &str, faults: &[&str]) -> String {
    for fault in faults {
        assert!(text.contains(&format!("//! {fault}: ")), "no fault {fault}");
    }
    let line = |line: &str| {
        let Some((good, bad)) = line.split_once("//! ") else { return line.to_owned() };
        let (name, bad) = bad.split_once(": ").expect("a fault has a name and a text");
        if faults.contains(&name) { bad.to_owned() } else { good.to_owned() }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What stands in a buffer.
pub trait Element: Copy {
    fn put(self, out: &mut Vec<u8>);
    fn take(bytes: &[u8]) -> Self;
}

macro_rules! element {
    ($($ty:ty),*) => {$(
        impl Element for $ty {
            fn put(self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
            fn take(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("as many bytes as the type has"))
            }
        }
    )*};
}
element!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

/// A buffer of a [`Stream`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer(pub u64);

/// An argument, as the bytes of its parameter.
pub struct Argument(Vec<u8>);

macro_rules! argument {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Argument {
            fn from(value: $ty) -> Self {
                Self(value.to_le_bytes().to_vec())
            }
        }
    )*};
}
argument!(u32, i32, u64, f32, f64);
impl From<Buffer> for Argument {
    fn from(buffer: Buffer) -> Self {
        buffer.0.into()
    }
}

/// The arguments of a launch, each of its own type.
#[macro_export]
macro_rules! arguments {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::common::Argument::from($value)),*]
    };
}

/// Memory, and launches one after the other.
#[derive(Default)]
pub struct Stream {
    pub memory: GlobalMemory,
}

impl Stream {
    pub fn buffer<T: Element>(&mut self, name: &str, values: &[T]) -> Buffer {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| value.put(&mut bytes));
        Buffer(self.memory.add_owned(&bytes, 256, name))
    }

    pub fn read<T: Element>(&self, buffer: Buffer) -> Vec<T> {
        let bytes = self.memory.bytes(buffer.0).expect("a buffer of this stream");
        bytes.chunks_exact(size_of::<T>()).map(T::take).collect()
    }

    pub fn launch(&mut self, kernel: &Kernel, shape: &Shape, arguments: Vec<Argument>) -> Run {
        let params = block(kernel, arguments);
        let request = LaunchRequest {
            grid: shape.grid,
            block: shape.block,
            dynamic_shared: shape.dynamic_shared,
            params,
            options: shape.options.clone(),
        };
        let outcome = run(&kernel.program, &request, &mut self.memory, None, None)
            .unwrap_or_else(|error| panic!("{}: {error}", kernel.program.name()));
        let findings = kernel.program.explain(&outcome.reports, &self.memory);
        Run { outcome, findings }
    }
}

/// The parameter block of a launch.
fn block(kernel: &Kernel, arguments: Vec<Argument>) -> Vec<u8> {
    let params = kernel.program.params();
    assert_eq!(arguments.len(), params.len(), "arguments of {}", kernel.program.name());
    let mut block = vec![0; kernel.program.param_bytes() as usize];
    for (param, Argument(bytes)) in params.iter().zip(arguments) {
        assert_eq!(bytes.len(), param.bytes as usize, "bytes of {}", param.name);
        block[param.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    block
}

/// Grid, block and options of a launch.
#[derive(Clone, Debug)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    pub options: RunOptions,
}

/// A launch of `ctas` CTAs of `threads` threads.
pub fn shape(ctas: u32, threads: u32) -> Shape {
    let options = RunOptions { step_limit: 1 << 20, ..RunOptions::default() };
    Shape { grid: [ctas, 1, 1], block: [threads, 1, 1], dynamic_shared: 0, options }
}

impl Shape {
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.options.schedule = schedule;
        self
    }
    pub fn dynamic_shared(mut self, bytes: u32) -> Self {
        self.dynamic_shared = bytes;
        self
    }
    pub fn step_limit(mut self, limit: u64) -> Self {
        self.options.step_limit = limit;
        self
    }
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.options.jobs = jobs;
        self
    }
}

/// Both plain orders, and random ones.
pub fn schedules(seeds: u64) -> impl Iterator<Item = Schedule> {
    [Schedule::Forward, Schedule::Reversed].into_iter().chain((0..seeds).map(Schedule::Random))
}

/// What came of a launch, in words.
pub struct Run {
    pub outcome: Outcome,
    pub findings: Vec<Explained>,
}

impl Run {
    /// Nothing was found.
    #[track_caller]
    pub fn clean(&self) -> &Self {
        assert!(self.findings.is_empty(), "{}", self.shown());
        self
    }

    /// Nothing but notes was found.
    #[track_caller]
    pub fn no_errors(&self) -> &Self {
        assert_eq!(self.outcome.reports.errors(), 0, "{}", self.shown());
        self
    }

    /// The kinds found, in order, each once.
    pub fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<_> = self.findings.iter().map(|found| found.kind).collect();
        kinds.dedup();
        kinds
    }

    /// The kinds of errors found, sorted, each once.
    pub fn errors(&self) -> Vec<&'static str> {
        let errors = self.findings.iter().filter(|found| found.severity == Severity::Error);
        let mut kinds: Vec<_> = errors.map(|found| found.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// The finding of this kind whose places are these lines, the later one first.
    #[track_caller]
    pub fn at(&self, kind: &str, lines: &[u32]) -> &Explained {
        let found = self.findings.iter().find(|found| {
            let places: Vec<_> = found.places.iter().map(|place| place.ptx_line).collect();
            found.kind == kind && places == lines
        });
        found.unwrap_or_else(|| panic!("no {kind} at {lines:?}:\n{}", self.shown()))
    }

    pub fn shown(&self) -> String {
        self.findings.iter().map(|found| format!("{found}\n")).collect()
    }
}

/// Bits, to compare floats by.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A generator of test data: the same numbers on every machine (Marsaglia's xorshift).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    /// A multiple of 1/16 between -8 and 8: short sums of short products are exact.
    pub fn short(&mut self) -> f32 {
        (self.below(257) as f32 - 128.0) / 16.0
    }
    /// Between -1 and 1, with all bits used.
    pub fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}
