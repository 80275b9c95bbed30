//! What holds for every input, for the fuzzer and for tests.

use super::{parse, print};

/// Parses whatever it is given and checks T1: what parses, prints to something equal.
///
/// # Panics
/// When the parser panics, or when printing loses or changes something: a bug here.
pub fn parse_never_panics(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(module) = parse(&text) {
        let printed = print(&module);
        match parse(&printed) {
            Ok(again) => assert_eq!(again, module, "printing changed the module:\n{printed}"),
            Err(error) => panic!("what was printed does not parse: {error}\n{printed}"),
        }
    }
}
