//! Prints the linear layout of each line `shape<TAB>encoding`, such as `16x256<TAB>#ttg.blocked<…>`.
//!
//! One line comes out for each that goes in: the layout, or `error: ` and why there is none. The
//! comparison with Triton (`tests/python/test_layouts.py`) runs it.

use bitstable_lowering::encoding::linear_layout;
use bitstable_lowering::layout::Shape;
use std::error::Error;
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        match answer(&line?) {
            Ok(layout) => writeln!(out, "{layout}")?,
            Err(error) => writeln!(out, "error: {error}")?,
        }
    }
    Ok(out.flush()?)
}

fn answer(line: &str) -> Result<String, Box<dyn Error>> {
    let (shape, encoding) = line.split_once('\t').ok_or("no tab between shape and encoding")?;
    let extents = shape.split('x').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    Ok(linear_layout(encoding, &Shape::from_extents(&extents)?)?.to_string())
}
