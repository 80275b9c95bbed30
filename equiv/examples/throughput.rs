//! How fast kernels are read and walked, on one core: by kernel, and against the length of the text.
//!
//! For scale: the Python prototype `bitequiv` published 50 ms for a configuration of a reduction and
//! 2000 ms for one of flash attention.
//!
//! Usage: `throughput FOLDER [--facts] [--only WORD]`, of a corpus that `scripts/bit-corpus` built

#[path = "../tests/mutants/case.rs"]
#[allow(dead_code, reason = "only launches are used")]
mod case;

use std::{collections::BTreeMap, path::Path, time::Instant};

use bitstable_equiv::{Launch, signature};
use bitstable_ptx::syntax::parse;

/// Of one family: kernels, seconds in all, of those in parsing, of the slowest; not followed.
#[derive(Default)]
struct Row {
    kernels: u32,
    seconds: f64,
    parsing: f64,
    worst: f64,
    obstacles: u32,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = args.first() else {
        eprintln!("usage: throughput FOLDER [--facts] [--only WORD]");
        std::process::exit(2);
    };
    let facts = args.iter().any(|word| word == "--facts");
    let only = args.iter().position(|word| word == "--only").and_then(|at| args.get(at + 1));
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    // By the power of two of the number of bytes.
    let mut lengths: BTreeMap<u32, (u32, f64, f64)> = BTreeMap::new();
    for case in case::cases(Path::new(folder)) {
        let family = case.name.split(' ').next().unwrap_or_default().to_owned();
        if only.is_some_and(|word| !family.contains(word.as_str())) {
            continue;
        }
        let text = std::fs::read_to_string(&case.file).expect("a kernel");
        let launch = if facts { case.launch() } else { Launch::default() };
        let begun = Instant::now();
        let module = parse(&text).expect("PTX");
        let parsed = begun.elapsed().as_secs_f64();
        let told = signature(&module, None, &launch).expect("a kernel");
        let seconds = begun.elapsed().as_secs_f64();
        let row = rows.entry(family).or_default();
        row.kernels += 1;
        row.seconds += seconds;
        row.parsing += parsed;
        row.worst = row.worst.max(seconds);
        row.obstacles += u32::from(told.obstacle.is_some());
        let length = lengths.entry(text.len().ilog2()).or_default();
        *length = (length.0 + 1, length.1 + text.len() as f64, length.2 + seconds);
    }
    println!("{:24} kernels  ms each  worst ms  parsing  kernels/s  not followed", "family");
    let print = |name: &str, row: &Row| {
        let each = row.seconds / f64::from(row.kernels.max(1));
        println!(
            "{name:24} {:7} {:8.2} {:9.2} {:7.0}% {:10.0} {:13}",
            row.kernels,
            1e3 * each,
            1e3 * row.worst,
            100.0 * row.parsing / row.seconds,
            1.0 / each,
            row.obstacles
        );
    };
    let mut total = Row::default();
    for (name, row) in &rows {
        print(name, row);
        total.kernels += row.kernels;
        total.seconds += row.seconds;
        total.parsing += row.parsing;
        total.worst = total.worst.max(row.worst);
        total.obstacles += row.obstacles;
    }
    print("all", &total);
    println!("\nbytes (mean)  kernels  ms each  ns a byte");
    for (count, bytes, seconds) in lengths.values() {
        let mean = bytes / f64::from(*count);
        let each = seconds / f64::from(*count);
        println!("{mean:12.0} {count:8} {:8.2} {:10.1}", 1e3 * each, 1e9 * each / mean);
    }
}
