//! Matrix fragments, executed, against the manual's layout: lane `l` has elements `2(l mod 4)` and
//! the next of row `l / 4`; of a column where the matrix is transposed.

mod common;

use common::{Kernel, Run, Stream, shape};

const MATRIX: &str = include_str!("programs/matrix.ptx");
const SIDE: usize = 8;

/// The row of shared memory that a lane names.
fn named(lane: usize) -> usize {
    (5 * lane + 3) % 32
}

/// 256 different elements, as 32 rows.
fn elements() -> Vec<u16> {
    (0..256).map(|at| 0x100 + 7 * at).collect()
}

/// The two elements of a fragment's word, the lower one first, as row and column.
fn places(lane: usize, transposed: bool) -> [(usize, usize); 2] {
    [0, 1].map(|half| {
        let (row, column) = (lane / 4, 2 * (lane % 4) + half);
        if transposed { (column, row) } else { (row, column) }
    })
}

fn launched(entry: &str, faults: &[&str], given: &[u16], words: usize) -> (Run, Vec<u16>) {
    let kernel = Kernel::variant(MATRIX, entry, faults);
    let mut stream = Stream::default();
    let (out, input) = (stream.buffer("out", &vec![0_u16; words]), stream.buffer("in", given));
    let run = stream.launch(&kernel, &shape(1, 32), arguments![out, input]);
    (run, stream.read(out))
}

#[test]
fn loads_give_each_lane_its_pair() {
    let given = elements();
    let (run, found) = launched("loads", &[], &given, 32 * 20);
    run.clean();
    let pair = |matrix: usize, lane: usize, transposed: bool| {
        places(lane, transposed)
            .map(|(row, column)| given[SIDE * named(SIDE * matrix + row) + column])
    };
    for lane in 0..32 {
        let mut expected = Vec::new();
        for transposed in [false, true] {
            expected.extend((0..4).flat_map(|matrix| pair(matrix, lane, transposed)));
        }
        expected.extend([pair(0, lane, false), pair(0, lane, true)].concat());
        assert_eq!(found[20 * lane..][..20], expected, "lane {lane}");
    }
}

#[test]
fn stores_put_each_pair_in_its_place() {
    let given = elements();
    let (run, found) = launched("stores", &[], &given, 512);
    run.clean();
    for (tile, transposed) in [(0, false), (256, true)] {
        for (lane, matrix) in (0..32).flat_map(|lane| (0..4).map(move |matrix| (lane, matrix))) {
            for (half, (row, column)) in places(lane, transposed).into_iter().enumerate() {
                let at = tile + SIDE * named(SIDE * matrix + row) + column;
                let from = SIDE * lane + 2 * matrix + half;
                assert_eq!(found[at], given[from], "matrix {matrix}, lane {lane}, {transposed}");
            }
        }
    }
}

#[test]
fn stores_race_with_reads_of_other_lanes() {
    let (run, _) = launched("stores", &["early"], &elements(), 512);
    assert_eq!(run.errors(), ["race"], "{}", run.shown());
}
