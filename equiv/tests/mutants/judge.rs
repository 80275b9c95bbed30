//! Whether the checker's classes hold what was seen of the kernels in them.

use std::collections::BTreeMap;

use bitstable_equiv::{Launch, signature};
use bitstable_ptx::ir::Module;

use super::{
    case::Case,
    change::{Change, change, entry},
    random::Random,
    rig::{Rig, Seen},
};

#[derive(Clone, Default, Debug)]
pub struct Tally {
    /// Changed kernels that ran and were walked.
    pub mutants: usize,
    /// Of those, seen to differ from the kernel they were made of.
    pub differing: usize,
    /// Seen to be equal, proved equal.
    pub proved: usize,
    /// Seen to be equal, not proved.
    pub unproved: usize,
    /// Not followed: known by their text.
    pub obstacles: usize,
    /// Changes that left nothing that can be launched.
    pub refused: usize,
    pub over_merges: Vec<String>,
    /// The walk that took longest.
    pub slowest: (std::time::Duration, String),
    /// Equal digests where one errs and the other does not.
    pub faults: Vec<String>,
    /// By kind of change: mutants, those that differ.
    pub kinds: BTreeMap<&'static str, [usize; 2]>,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.mutants += other.mutants;
        self.differing += other.differing;
        self.proved += other.proved;
        self.unproved += other.unproved;
        self.obstacles += other.obstacles;
        self.refused += other.refused;
        self.over_merges.extend(other.over_merges);
        self.faults.extend(other.faults);
        self.slowest = std::mem::take(&mut self.slowest).max(other.slowest);
        for (kind, [all, differing]) in other.kinds {
            let known = self.kinds.entry(kind).or_default();
            *known = [known[0] + all, known[1] + differing];
        }
    }
}

/// A member of a class: what was seen of it, and how it was made.
type Member = (Seen, String);

/// Makes `count` changes of a case's kernel, and judges all of them.
pub fn judge(case: &Case, count: usize, draws: usize, seed: u64) -> Tally {
    let text = std::fs::read_to_string(&case.file).expect("a kernel");
    let mut module = bitstable_ptx::syntax::parse(&text).expect("PTX");
    let mut rig = Rig::new(case, draws, seed);
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    let Some(original) = rig.run(&module) else { return tally };
    if matches!(original, Seen::Errors(_)) {
        return tally;
    }
    let launches = [case.launch(), Launch::default()];
    let digests = |module: &Module| launches.each_ref().map(|l| signature(module, None, l).ok());
    let mut classes: [BTreeMap<u128, Vec<Member>>; 2] = Default::default();
    let first = digests(&module);
    for (class, found) in classes.iter_mut().zip(&first) {
        if let Some(found) = found {
            class.insert(found.digest.0, vec![(original.clone(), "the kernel itself".into())]);
        }
    }
    let body = entry(&mut module).expect("a kernel").clone();
    for _ in 0..count {
        let Some(made) = change(&body, &mut random) else { break };
        let mutant = made.apply(&module);
        let begun = std::time::Instant::now();
        let found = digests(&mutant);
        let walked = begun.elapsed();
        let Some(seen) = rig.run(&mutant) else {
            tally.refused += 1;
            continue;
        };
        let mut text = made.describe(&body);
        if walked > tally.slowest.0 {
            tally.slowest = (walked, format!("{}\n{text}", case.file.display()));
        }
        if let Seen::Errors(kinds) = &seen {
            text += &format!("\n  errors: {}", kinds.join(", "));
        }
        count_one(&mut tally, &made, (&original, &seen), &first, &found);
        for (facts, (class, found)) in classes.iter_mut().zip(found).enumerate() {
            let Some(found) = found else { continue };
            let members = class.entry(found.digest.0).or_default();
            compare(&mut tally, case, facts == 0, members, (&seen, &text));
            // One member of each kind of sight is enough to compare with.
            if members.iter().all(|(known, _)| *known != seen) {
                members.push((seen.clone(), text.clone()));
            }
        }
    }
    tally
}

fn count_one(
    tally: &mut Tally,
    made: &Change,
    (original, seen): (&Seen, &Seen),
    first: &[Option<bitstable_equiv::Signature>; 2],
    found: &[Option<bitstable_equiv::Signature>; 2],
) {
    tally.mutants += 1;
    let [Some(first), ..] = first else { return };
    let [Some(found), ..] = found else { return };
    tally.obstacles += usize::from(found.obstacle.is_some());
    let kind = tally.kinds.entry(made.kind).or_default();
    kind[0] += 1;
    if seen != original {
        tally.differing += 1;
        kind[1] += 1;
    } else if found.digest == first.digest {
        tally.proved += 1;
    } else {
        tally.unproved += 1;
    }
}

fn compare(
    tally: &mut Tally,
    case: &Case,
    facts: bool,
    members: &[Member],
    (seen, text): (&Seen, &String),
) {
    if let Some((known, other)) = members.iter().find(|(known, _)| known != seen) {
        let told = if facts { "launch facts given" } else { "no launch facts" };
        let message =
            format!("{}\n{} ({told})\n- {other}\n- {text}\n", case.name, case.file.display());
        match (known, seen) {
            (Seen::Bytes(_), Seen::Bytes(_)) => tally.over_merges.push(message),
            (Seen::Bytes(_), Seen::Errors(kinds)) | (Seen::Errors(kinds), Seen::Bytes(_)) => {
                // A load beyond a buffer whose value nobody uses moves no bits.
                if !kinds.iter().all(|kind| matches!(*kind, "out of bounds" | "misaligned")) {
                    tally.faults.push(message);
                }
            }
            (Seen::Errors(_), Seen::Errors(_)) => {}
        }
    }
}
