//! What the watch costs, in nanoseconds of this thread's processor time a warp access. By hand:
//! `cargo test --release --test memory speed -- --ignored --nocapture`.

use bitstable_ptx::{
    ir::Space::{self, Global, Shared},
    memory::{CtaMemory, GlobalMemory, MemoryOptions, WarpAccess, space::SHARED_BASE},
};

use super::rig::WEAK;

/// Nanoseconds this thread has run: what else the machine does is not counted.
fn on_processor() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat");
    stat.ok().and_then(|stat| stat.split(' ').next()?.parse().ok()).unwrap_or(0)
}

fn time(name: &str, mut run: impl FnMut(u32)) -> f64 {
    let rounds = 200_000;
    (0..1000).for_each(&mut run);
    let start = on_processor();
    (0..rounds).for_each(&mut run);
    let nanoseconds = (on_processor() - start) as f64 / f64::from(rounds);
    println!("{name:<52}{nanoseconds:8.0} ns");
    nanoseconds
}

#[test]
#[ignore = "a measurement"]
fn warp_accesses() {
    let mut slowest: f64 = 0.0;
    for races in [false, true] {
        let options = MemoryOptions { races, strict: false, synchronised: true };
        let mut global = GlobalMemory::default();
        let bytes = 1 << 20;
        let base = global.add_owned(&vec![0; bytes], 128, "x");
        let mut memory = CtaMemory::new(0, 128, 32 << 10, 0, options);
        let all = [(0, u32::MAX), (1, u32::MAX), (2, u32::MAX), (3, u32::MAX)];
        for (space, low) in [(Global, base), (Shared, u64::from(SHARED_BASE))] {
            for (width, count) in [(4, 1), (4, 4), (2, 1)] {
                let bytes = u64::from(width * count);
                let whole = if space == Global { 1 << 20 } else { 32 << 10 };
                let access = |round: u32, one: bool, warp: u32| -> [u64; 32] {
                    let start = u64::from(round * 4 + warp) * 32 * bytes % (whole - 4096);
                    std::array::from_fn(|lane| {
                        low + start + if one { 0 } else { lane as u64 * bytes }
                    })
                };
                let mut run = |name: &str, one: bool, write: bool, warps: u32, each: u32| {
                    let title = format!("races {races} {space:?} {width}x{count} {name}");
                    let cost = time(&title, |round| {
                        let warp = round % warps;
                        let addresses = access(round / each, one, if each > 1 { 0 } else { warp });
                        let access = at(warp, space, &addresses, width, count);
                        let mut rows = [[0; 32]; 4];
                        if write {
                            memory.store(&global, &access, &rows);
                        } else {
                            memory.load(&global, &access, &mut rows[..count as usize]);
                        }
                    });
                    slowest = slowest.max(cost);
                    for (warp, mask) in all {
                        memory.barrier_arrive(0, warp, mask, false);
                    }
                    memory.barrier_complete(0, &all);
                };
                run("coalesced store, one warp", false, true, 1, 1);
                run("coalesced load, one warp", false, false, 1, 1);
                run("broadcast load, one warp", true, false, 1, 1);
                run("the same load, four warps", false, false, 4, 4);
            }
        }
        time(&format!("races {races} barrier of four warps"), |_| {
            for (warp, mask) in all {
                memory.barrier_arrive(0, warp, mask, false);
            }
            memory.barrier_complete(0, &all);
        });
        time(&format!("races {races} bar.warp.sync"), |_| memory.warp_sync(0, u32::MAX));
    }
    assert!(slowest < 100_000.0);
}

fn at(warp: u32, space: Space, addresses: &[u64; 32], width: u32, count: u32) -> WarpAccess<'_> {
    WarpAccess { pc: 0, warp, mask: u32::MAX, space, ordering: WEAK, addresses, width, count }
}
