//! How fast the executor runs a kernel: instructions of threads a second, and seconds.
//!
//! The kernel takes two `f32` matrices (input, output), the row length, and whatever scratch
//! pointers follow; one CTA a row. `benches/executor.py` compiles a row softmax and runs this.
//!
//! Usage: `throughput KERNEL.ptx ROWS COLUMNS SHARED JOBS [races]`

use std::{error::Error, time::Instant};

use bitstable_ptx::{
    exec::{LaunchRequest, Program, RunOptions, run},
    memory::GlobalMemory,
    syntax,
};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, rows, columns, shared, jobs, rest @ ..] = args.as_slice() else {
        return Err("usage: throughput KERNEL.ptx ROWS COLUMNS SHARED JOBS [races]".into());
    };
    let (rows, columns): (u32, u32) = (rows.parse()?, columns.parse()?);
    let text = std::fs::read_to_string(path)?;
    let started = Instant::now();
    let program = Program::new(&syntax::parse(&text)?, None)?;
    let decoded = started.elapsed();

    let count = rows as usize * columns as usize;
    let input: Vec<u8> =
        (0..count).flat_map(|at| ((at * 7919 % 1000) as f32 / 250.0 - 2.0).to_le_bytes()).collect();
    let mut memory = GlobalMemory::default();
    let from = memory.add_owned(&input, 16, "input");
    let to = memory.add_owned(&vec![0; input.len()], 16, "output");
    let mut params = vec![0; program.param_bytes() as usize];
    params[..8].copy_from_slice(&from.to_le_bytes());
    params[8..16].copy_from_slice(&to.to_le_bytes());
    params[16..20].copy_from_slice(&columns.to_le_bytes());
    let request = LaunchRequest {
        grid: [rows, 1, 1],
        block: program.required_threads().unwrap_or([128, 1, 1]),
        dynamic_shared: shared.parse()?,
        params,
        options: RunOptions {
            races: rest.iter().any(|word| word == "races"),
            jobs: jobs.parse()?,
            ..RunOptions::default()
        },
    };
    let started = Instant::now();
    let outcome = run(&program, &request, &mut memory, None, None)?;
    let seconds = started.elapsed().as_secs_f64();
    for explained in program.explain(&outcome.reports, &memory) {
        eprintln!("{explained}");
    }
    let result = memory.bytes(to).ok_or("the output is gone")?;
    let sum: f64 = result[..4 * columns as usize]
        .chunks_exact(4)
        .map(|raw| f64::from(f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]])))
        .sum();
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds,
            "decode_seconds": decoded.as_secs_f64(),
            "thread_instructions": outcome.statistics.thread_instructions,
            "warp_instructions": outcome.statistics.warp_instructions,
            "thread_instructions_per_second": outcome.statistics.thread_instructions as f64 / seconds,
            "register_bytes": outcome.statistics.register_bytes,
            "first_row_sum": sum,
        })
    );
    Ok(())
}
