//! Prints a kernel's signature.
use bitstable_equiv::{Launch, signature};
fn main() {
    let file = std::env::args().nth(1).expect("a file");
    let module = bitstable_ptx::syntax::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
    println!("{:#?}", signature(&module, None, &Launch::default()).unwrap());
}
