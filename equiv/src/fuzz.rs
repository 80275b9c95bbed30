//! What holds of walking any text, for the fuzzer and for tests.

use bitstable_ptx::syntax::parse;

use crate::{Launch, Verdict, same, signature};

/// Kernels of one text that are walked.
const MOST_KERNELS: usize = 4;

/// Walks every kernel of a text that parses: any launch, and one CTA of two with small numbers for
/// parameters.
///
/// # Panics
/// When the walk panics, or a kernel is not the same as itself: a bug here.
pub fn equiv_never_panics(bytes: &[u8]) {
    let Ok(module) = parse(&String::from_utf8_lossy(bytes)) else { return };
    let kernels = module.functions.iter().filter(|function| function.entry);
    for kernel in kernels.take(MOST_KERNELS) {
        let name = Some(kernel.name.as_str());
        let small = (0..kernel.params.len() as u32)
            .filter(|number| kernel.params[*number as usize].ty.bits() <= 32)
            .map(|number| (number, 3));
        let launches = [
            Launch::default(),
            Launch { grid: Some([2, 1, 1]), block: Some([40, 1, 1]), scalars: small.collect() },
        ];
        for launch in &launches {
            let Ok(first) = signature(&module, name, launch) else { continue };
            let again = signature(&module, name, launch).map(|again| again.digest);
            assert_eq!(again, Ok(first.digest), "`{}` is not itself", kernel.name);
            let told = same((&module, name, launch), (&module, name, launch));
            assert!(
                !matches!(told, Ok(Verdict::Different(_))),
                "`{}` differs from itself: {told:?}",
                kernel.name
            );
        }
    }
}
