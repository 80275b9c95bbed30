//! What `--help` teaches.

/// Under `bitstable --help`.
pub const COMMAND: &str = "\
Examples:
  bitstable run add.ptx --grid 8 x=f32:1024=random:1 y=f32:1024=random:2 out=f32:1024 n=1024
  bitstable tree sum.ptx --grid 4 x=f32:4096=random:1 out=f32:4 --svg sum.svg

`bitstable run --help` and `bitstable tree --help` say where a Triton kernel's PTX is, how
arguments are written, and show more examples. TTGIR goes through `bitstable-opt`.

Exit status:
  0  all is as it should be
  1  findings, a tree that is not canonical, or bytes that depend on the schedule
  2  the command line or an input is wrong; there is no answer";

/// Under `-h` of a command.
pub const MORE: &str = "`--help` explains arguments and shows examples.";

/// Under `bitstable run --help`.
pub const RUN: &str = concat!(
    "\
Examples:
  Add two vectors; print eight elements of the result:
    bitstable run add.ptx --grid 8 --print out:8 \\
        x=f32:1024=random:1 y=f32:1024=random:2 out=f32:1024 n=1024

  Does the result depend on the order in which warps and CTAs run?
    bitstable run histogram.ptx --grid 8 --schedules 20 x=i32:4096=random:3:0..256 h=i32:256

  The same bytes as a GPU gave?
    bitstable run sum.ptx --grid 4 x=f32:4096=@x.npy out=f32:4 --save out=cpu.npy --digest
",
    include_str!("help/launch.txt")
);

/// Under `bitstable tree --help`.
pub const TREE: &str = concat!(
    "\
Examples:
  Is every row's sum the canonical tree over its 1024 elements?
    bitstable tree sum.ptx --grid 4 --extent 1024 x=f32:4096=random:1 out=f32:4

  How is row 0 added up? As text, and as a drawing:
    bitstable tree sum.ptx --grid 4 --output out:0 --print --svg row.svg \\
        x=f32:4096=random:1 out=f32:4

  Do four warps and eight add in the same order?
    bitstable tree warps4/sum.ptx --compare warps8/sum.ptx --grid 4 \\
        x=f32:4096=random:1 out=f32:4

A tree is canonical when neighbours are joined first: [0, 2n) is [0, n) and [n, 2n), the lower
one on the left. An output may have several reductions below it, as a softmax has, or none; the
order of minima, maxima and integer sums does not matter. Outputs whose reductions differ only
in where their leaves begin are shown together. With --compare the exit status says whether the
trees are the same, canonical or not.
",
    include_str!("help/launch.txt")
);
