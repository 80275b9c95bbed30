//! Compares proved classes with observed ones: `corpus FOLDER [--free]`.
use std::collections::BTreeMap;

use bitstable_equiv::{Launch, signature};

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let free = std::env::args().any(|a| a == "--free");
    let only = std::env::args().nth(2).filter(|a| !a.starts_with('-'));
    let mut cases: BTreeMap<String, Vec<(u128, Option<String>, String, bool)>> = BTreeMap::new();
    let mut obstacles: BTreeMap<String, usize> = BTreeMap::new();
    let (mut files, mut spent, mut parse) = (0u32, 0f64, 0f64);
    let mut done = BTreeMap::new();
    for entry in std::fs::read_dir(if std::path::Path::new(&format!("{folder}/manifest")).exists() { format!("{folder}/manifest") } else { folder.clone() }).expect("folder") {
        let path = entry.expect("entry").path();
        if path.extension().is_none_or(|e| e != "jsonl") { continue; }
        for line in std::fs::read_to_string(&path).expect("text").lines() {
            let Ok(v) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            let Some(ptx) = v["ptx"].as_str() else { continue };
            let case = v["case"].as_str().unwrap().to_owned();
            if only.as_ref().is_some_and(|o| !case.contains(o.as_str())) { continue; }
            let grid: Vec<u32> = v["grid"].as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect();
            let mut launch = Launch::default();
            if !free {
                launch.grid = Some([grid[0], grid[1], grid[2]]);
                for (k, x) in v["scalars"].as_object().unwrap() {
                    launch.scalars.insert(k.parse().unwrap(), x.as_u64().unwrap());
                }
            }
            let key = (ptx.to_owned(), format!("{launch:?}"));
            let label = v["label"].as_str().map(str::to_owned);
            let (digest, obstacle) = done.entry(key).or_insert_with(|| {
                let file = [format!("{folder}/ptx/{ptx}"), format!("{folder}/{ptx}")].into_iter().find(|p| std::path::Path::new(p).exists()).unwrap();
                let text = std::fs::read_to_string(file).unwrap();
                let start = std::time::Instant::now();
                let module = bitstable_ptx::syntax::parse(&text).unwrap();
                parse += start.elapsed().as_secs_f64();
                let s = signature(&module, None, &launch).unwrap();
                spent += start.elapsed().as_secs_f64();
                files += 1;
                if let Some(o) = &s.obstacle { *obstacles.entry(format!("{} [{}]", o.what, v["kernel"].as_str().unwrap())).or_default() += 1; }
                (s.digest.0, s.obstacle.is_some())
            }).clone();
            cases.entry(case).or_default().push((digest, label, v["configuration"].to_string(), obstacle));
        }
    }
    let mut over = 0;
    for (case, all) in &cases {
        let mut by: BTreeMap<u128, std::collections::BTreeSet<&Option<String>>> = BTreeMap::new();
        for (d, l, _, _) in all { by.entry(*d).or_default().insert(l); }
        let observed: std::collections::BTreeSet<_> = all.iter().filter_map(|a| a.1.as_ref()).collect();
        let bad: usize = by.values().filter(|s| s.iter().filter(|l| l.is_some()).count() > 1).count();
        over += bad;
        let blocked = all.iter().filter(|a| a.3).count();
        println!("{:4} configs {:3} proved {:3} observed {:2} over {:3} obstacle  {case}", all.len(), by.len(), observed.len(), bad, blocked);
        if bad > 0 { for (d, l, c, _) in all { println!("    {d:032x} {l:?} {c}"); } }
        if std::env::var("SHOW").is_ok() && by.len() > observed.len() { for (d, l, c, o) in all { println!("    {:08x} {o} {:?} {c}", d >> 96, l.as_ref().map(|l| &l[..8])); } }
    }
    for (o, n) in &obstacles { println!("{n:4} {o}"); }
    println!("over-merges {over}; {files} files {:.3} ms each, parse {:.3} ms each", 1e3 * spent / f64::from(files), 1e3 * parse / f64::from(files));
}
