//! Compares two kernels: `two A.ptx B.ptx`.
use bitstable_equiv::{Launch, same};
fn main() {
    let read = |n: usize| bitstable_ptx::syntax::parse(&std::fs::read_to_string(std::env::args().nth(n).unwrap()).unwrap()).unwrap();
    let (a, b) = (read(1), read(2));
    let launch = |n: usize| {
        let mut launch = Launch::default();
        if let Some(g) = std::env::args().nth(n) {
            let all: Vec<u32> = g.split(',').map(|x| x.parse().unwrap()).collect();
            launch.grid = Some([all[0], all[1], all[2]]);
            for (at, value) in all[3..].chunks(2).map(|c| (c[0], c[1])) { launch.scalars.insert(at, value.into()); }
        }
        launch
    };
    let (x, y) = (launch(3), launch(4));
    match same((&a, None, &x), (&b, None, &y)).unwrap() {
        bitstable_equiv::Verdict::Different(all) => for d in all { println!("{} lines {} {}\n   {}", d.output, d.at[0].as_ref().map_or(0, |p| p.line), d.at[1].as_ref().map_or(0, |p| p.line), d.text); },
        other => println!("{other:?}"),
    }
}
