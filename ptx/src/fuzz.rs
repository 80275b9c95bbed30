//! What holds of running any text, for the fuzzer and for tests.

use crate::{
    exec::{LaunchRequest, Program, RunOptions, Schedule, run},
    memory::GlobalMemory,
    syntax::parse,
};

/// Kernels of one text that are run.
const MOST_KERNELS: usize = 8;
/// Warp steps of one CTA.
const STEPS: u64 = 4000;
/// Bytes of each buffer that is passed.
const BUFFER: usize = 4096;
/// Larger parameter blocks and frames are left alone: what they cost is not what is tested.
const MOST_PARAMS: u32 = 1024;

/// Runs every kernel of a text that decodes: on two CTAs, the second warp of each not full, with
/// buffers for parameters of 8 bytes and small numbers for the others.
///
/// # Panics
/// When the machine panics: a bug here. Whatever the kernel does wrong is a finding.
pub fn run_never_panics(bytes: &[u8]) {
    let Ok(module) = parse(&String::from_utf8_lossy(bytes)) else { return };
    let kernels = module.functions.iter().filter(|function| function.entry);
    for (number, kernel) in kernels.take(MOST_KERNELS).enumerate() {
        let Ok(program) = Program::new(&module, Some(&kernel.name)) else { continue };
        if program.param_bytes() <= MOST_PARAMS {
            launch(&program, number);
        }
    }
}

fn launch(program: &Program, number: usize) {
    let mut memory = GlobalMemory::default();
    let mut params = vec![0; program.param_bytes() as usize];
    for param in program.params() {
        let value =
            if param.bytes == 8 { memory.add_owned(&[1; BUFFER], 256, &param.name) } else { 2 };
        let place = &mut params[param.offset as usize..];
        let bytes = (param.bytes as usize).min(8).min(place.len());
        place[..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
    let schedules = [Schedule::Forward, Schedule::Reversed, Schedule::Random(1)];
    let options = RunOptions {
        schedule: schedules[number % schedules.len()],
        step_limit: STEPS,
        jobs: 1,
        ..RunOptions::default()
    };
    let block = program.required_threads().unwrap_or([40, 1, 1]);
    let request = LaunchRequest { grid: [2, 1, 1], block, dynamic_shared: 256, params, options };
    if let Ok(outcome) = run(program, &request, &mut memory, None, None) {
        // Findings are explained too: their words must fit whatever was run.
        for explained in program.explain(&outcome.reports, &memory) {
            assert!(!explained.to_string().is_empty());
        }
    }
}
