//! The canonical tree: the one order in which a pinned reduction combines.
//!
//! # Idea
//! `T[i, i+1) = x[i]` and `T[lo, hi) = combine(T[lo, mid), T[mid, hi))` over `N = 2^n` leaves:
//! neighbours pair first, so axis bit 0 folds first.
//! # Invariants
//! - **T1** The tree is a function of `N`. No layout, warp count or target enters this module.
//! - **T2** The lower index is the left operand, even where the combine commutes.
//! # Held by
//! T1: the signatures. T2: `check.rs`, which proves it of every plan.
//! # Not here
//! Who holds which leaf (`layout.rs`); rounding and contraction (the emission).

use sha2::{Digest, Sha256};

/// The value of the canonical tree over `leaves`, by the definition.
///
/// # Panics
/// When the number of leaves is not a power of two.
pub fn evaluate<T: Clone>(leaves: &[T], combine: &mut impl FnMut(T, T) -> T) -> T {
    assert!(leaves.len().is_power_of_two(), "a canonical tree has 2^n leaves");
    match leaves {
        [leaf] => leaf.clone(),
        _ => {
            let (left, right) = leaves.split_at(leaves.len() / 2);
            let left = evaluate(left, combine);
            let right = evaluate(right, combine);
            combine(left, right)
        }
    }
}

/// A digest of the canonical tree over `2^bits` leaves, as 32 hexadecimal digits.
///
/// A balanced subtree is named by its height and the distance between its halves, not by the
/// leaf at which it begins: one hash a level. Two reductions have the same digest exactly when
/// they fold axes of the same extent.
pub fn digest(bits: u32) -> String {
    let mut node: [u8; 32] = Sha256::digest(b"leaf").into();
    for level in 0..bits {
        let mut hash = Sha256::new();
        hash.update(b"combine");
        hash.update((1u64 << level).to_le_bytes());
        hash.update(node);
        hash.update(node);
        node = hash.finalize().into();
    }
    node[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_pair_first_and_the_lower_index_stands_left() {
        let leaves: Vec<String> = (0..8).map(|i| i.to_string()).collect();
        let tree = evaluate(&leaves, &mut |l, r| format!("({l}+{r})"));
        assert_eq!(tree, "(((0+1)+(2+3))+((4+5)+(6+7)))");
    }

    #[test]
    fn digests_tell_extents_apart() {
        let digests: std::collections::BTreeSet<String> = (0..=17).map(digest).collect();
        assert_eq!(digests.len(), 18);
    }
}
