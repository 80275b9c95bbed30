//! Mutation testing of the checker on a whole corpus.
//!
//! Usage: `mutants FOLDER [--seed S] [--limit CASES] [--each MUTANTS] [--draws N] [--only WORD]`

#[path = "../tests/mutants/mod.rs"]
mod mutants;

use std::{
    io::Write,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use mutants::{
    case::cases,
    judge::{Tally, judge},
    random::Random,
};
use rayon::prelude::*;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, options @ ..] = args.as_slice() else {
        eprintln!(
            "usage: mutants FOLDER [--seed S] [--limit CASES] [--each MUTANTS] [--only WORD]"
        );
        std::process::exit(2);
    };
    let option = |name: &str| {
        let at = options.iter().position(|option| option == name)?;
        options.get(at + 1).map(String::as_str)
    };
    let number = |name: &str, otherwise: u64| {
        option(name).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (seed, each) = (number("--seed", 1), number("--each", 20) as usize);
    let draws = number("--draws", 6) as usize;
    let mut all = cases(Path::new(folder));
    all.retain(|case| option("--only").is_none_or(|word| case.name.contains(word)));
    // Any order that the seed gives, so that a limit takes from everywhere.
    let mut random = Random::new(seed);
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all.truncate(number("--limit", u64::MAX).try_into().unwrap_or(usize::MAX));
    let (begun, done) = (Instant::now(), AtomicUsize::new(0));
    let total = Mutex::new(Tally::default());
    all.par_iter().enumerate().for_each(|(at, case)| {
        let tally = judge(case, each, draws, seed.wrapping_add(at as u64));
        for message in &tally.over_merges {
            println!("OVER-MERGE\n{message}");
        }
        for message in &tally.faults {
            println!("FAULT\n{message}");
        }
        std::io::stdout().flush().expect("output");
        total.lock().expect("no panic").add(tally);
        let done = done.fetch_add(1, Relaxed) + 1;
        if done.is_multiple_of(20) {
            let seconds = begun.elapsed().as_secs();
            eprintln!("{done} of {} kernels, {seconds} s", all.len());
        }
    });
    let total = total.into_inner().expect("no panic");
    for (kind, [count, differing]) in &total.kinds {
        println!("{count:7} {differing:7} differ  {kind}");
    }
    println!("slowest walk: {:.1} s, {}", total.slowest.0.as_secs_f64(), total.slowest.1);
    println!(
        "seed {seed}: {} kernels, {} mutants ({} refused): {} differ, {} proved equal, {} equal but \
         not proved, {} not followed; {} over-merges, {} faults unseen; {:.0} s",
        all.len(),
        total.mutants,
        total.refused,
        total.differing,
        total.proved,
        total.unproved,
        total.obstacles,
        total.over_merges.len(),
        total.faults.len(),
        begun.elapsed().as_secs_f64(),
    );
}
