//! Where kernels of different classes differ.
//!
//! # Not here
//! Why a kernel could not be followed: its class says it, and a comparison could say no more.

use std::sync::Arc;

use bitstable_equiv::partition::{Class, Comparison, Fault, Partition, Watch, Work, compare};
use rayon::prelude::*;

use super::given::Kernels;

/// Two classes of a group, compared in full by their first kernels.
pub struct Explained {
    /// Their numbers.
    pub classes: [usize; 2],
    pub kernels: [usize; 2],
    pub comparison: Result<Comparison, Arc<Fault>>,
}

/// Compares the first class of each group that was followed with the others, `most` pairs in all.
pub fn explain(
    kernels: &Kernels,
    partition: &Partition,
    most: usize,
    watch: &impl Watch,
) -> Vec<Explained> {
    let mut firsts: Vec<Option<usize>> = vec![None; kernels.groups.len()];
    let mut pairs = Vec::new();
    let followed = |(_, class): &(usize, &Class)| class.obstacle.is_none();
    for (number, class) in partition.classes.iter().enumerate().filter(followed) {
        match firsts[class.group as usize] {
            Some(first) => pairs.push([first, number]),
            None => firsts[class.group as usize] = Some(number),
        }
    }
    pairs.truncate(most);
    watch.begin(Work::Compare, pairs.len());
    pairs
        .into_par_iter()
        .with_max_len(1)
        .map(|classes| {
            let members = classes.map(|number| partition.classes[number].members[0]);
            let [a, b] = members.map(|number| &kernels.all[number]);
            let comparison = compare(a, b).map_err(Arc::new);
            watch.step();
            Explained { classes, kernels: members, comparison }
        })
        .collect()
}
