//! What `--help` teaches.

/// Under `bitstable --help`.
pub const COMMAND: &str = "\
Examples:
  bitstable run add.ptx --grid 8 x=f32:1024=random:1 y=f32:1024=random:2 out=f32:1024 n=1024
  bitstable tree sum.ptx --grid 4 x=f32:4096=random:1 out=f32:4 --svg sum.svg
  bitstable equiv warps4/sum.ptx warps8/sum.ptx

`bitstable run --help` and `bitstable tree --help` say where a Triton kernel's PTX is, how
arguments are written, and show more examples. TTGIR goes through `bitstable-opt`.

Exit status:
  0  all is as it should be
  1  findings, a tree that is not canonical, bytes that depend on the schedule, or kernels that
     are not proved the same
  2  the command line or an input is wrong; there is no answer, or none about that input";

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

/// Under `bitstable equiv --help`.
pub const EQUIV: &str = "\
Examples:
  Do four warps and eight return the same bits?
    bitstable equiv warps4/softmax.ptx warps8/softmax.ptx

  Where does the one that does not, differ?
    bitstable equiv warps4/softmax.ptx warps8/softmax.ptx --explain

  Which of all kernels in Triton's cache are the same?
    find ~/.triton/cache -name 'softmax*.ptx' | bitstable equiv --files-from - --json

  More is known of the launches: 1000 elements in parameter 3, eight CTAs
    bitstable equiv a.ptx b.ptx --scalar 3=1000 --grid 8

  Each has a launch of its own, and only kernels of one group are compared
    bitstable equiv --launches launches.json
  where launches.json is
    [{\"file\": \"a/sum.ptx\", \"group\": \"N=1000\", \"grid\": [8], \"scalars\": {\"3\": 1000}},
     {\"file\": \"b/sum.ptx\", \"group\": \"N=1000\", \"grid\": [4], \"scalars\": {\"3\": 1000}}]

Kernels of one class are proved to return the same bytes for every input and every launch that
agrees with what is said to be known of it (docs/equiv.md says what is taken for granted). Kernels of different classes may still do so: not
proved is not different; `bitstable bits` looks at bytes instead. Parameter N of one kernel is
parameter N of the others: pass them the same arguments in the same order.

A scalar's value is a number of the parameter's type (1024, 1e-5), of a type that is named
(f32:1e-5) where the PTX has bits alone, or bits (0x3f800000). A name is the one in the PTX.

Exit status:
  0  proved the same: each group is one class
  1  not proved the same
  2  a file cannot be read or understood (the others are answered all the same), or the command
     line is wrong";
