"""The machine model of `benches/cost`: what it counts, and when it lets instructions go.

Small texts whose cycles can be worked out by hand; compiled kernels where the text of a real
compiler matters. Whether pinned kernels are cheap is measured by the bench, not asserted here.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))

from cost.machine import amdgcn, flow, measure, nvidia, occupancy, sass, simulate
from cost.machine.flow import Kind, Way

import kernels
from compiling import GFX942, SM80, SM90, SM100, compile

FREE = "--:-:-:-:1"
SHUFFLE = "--:-:0:-:1 SHFL.BFLY PT, R1, R0, 0x1, 0x1f"
LOAD = "--:-:0:-:1 LDG.E.128 R4, [R2.64]"


def code(*lines):
    """A disassembly as Triton prints it; a line without control fields waits for nothing."""
    text = "Function:kernel\n"
    for line in lines:
        if line.endswith(":"):
            text += line + "\n"
            continue
        control, _, rest = line.partition(" ")
        if ":" not in control:
            control, rest = FREE, line
        text += f"{control}\t{rest};\n"
    return text


def cycles(*lines, target="sm_90", warps=1, trips=4):
    return measure(code(*lines, "EXIT"), target, warps, trips).cycles


# Counting


def test_counts_are_of_the_text_without_padding():
    found = measure(
        code(
            SHUFFLE,
            "@P0 STS.128 [R9], R4",
            "--:-:-:-:1 BAR.SYNC.DEFER_BLOCKING 0x0",
            "LDS.64 R10, [R9]",
            "LDSM.16.M88.4 R12, [R9]",
            LOAD,
            "STG.E.U8 [R2.64], R5",
            "EXIT",
            "LBB0:",
            "BRA LBB0",
            "NOP",
            "NOP",
        ),
        "sm_90",
        warps=4,
    )
    assert found.instructions == 8
    assert (found.shuffles, found.barriers) == (1, 1)
    assert (found.shared_loads, found.shared_stores) == (2, 1)
    assert found.shared_transactions == 4 + 2 + 4
    assert found.global_sectors == found.path_sectors == (16 + 1) * 32 * 4 // 32
    assert found.communication == 2 + 3 + 10 + 8


def test_registers_and_stack_are_read_off_the_text():
    program = sass.parse(
        code("IADD3 R1, R1, -0x58, RZ", "LDG.E.128 R40, desc[UR90][R2.64]", "EXIT")
    )
    assert program.registers == 40 + 4 + 2
    assert program.stack_bytes == 0x58


@pytest.mark.parametrize("target", (SM80, SM90, SM100), ids=lambda target: f"sm_{target.arch}")
@pytest.mark.parametrize("order", (None, "inner_tree"))
def test_registers_are_what_the_loader_will_see(target, order):
    made = compile(kernels.sum_tile, target, M=16, N=256, AXIS=1, ORDER=order)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        command = [triton.knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack = map(int, re.search(r"REG:(\d+) STACK:(\d+)", told).groups())
    found = measure(made.asm["sass"], f"sm_{target.arch}", 4)
    assert registers - found.registers in (0, 1)
    assert found.stack_bytes == stack == 0


# Waiting


def test_a_wait_lasts_until_the_scoreboard_clears():
    # Issued at 0, through the pipe at 1, there at 25; then the addition, then the exit.
    assert cycles(SHUFFLE, "01:-:-:-:1 FADD R2, R1, R0") == 27
    assert cycles(SHUFFLE, "02:-:-:-:1 FADD R2, R1, R0") == 3
    assert cycles(SHUFFLE, FREE + " FADD R2, R1, R0") == 3


def test_a_stall_count_holds_the_warp():
    assert cycles("--:-:-:-:b FADD R2, R1, R0") == 12


def test_schedulers_share_the_memory_pipe():
    chain = (SHUFFLE, "01:-:-:-:1 FADD R2, R1, R0")
    assert cycles(*chain, warps=4) == 30
    # Two warps a scheduler: the second one's shuffle is through at 8, there at 32.
    assert cycles(*chain, warps=8) == 34


def test_a_warp_hides_what_another_waits_for():
    alone = cycles(*[SHUFFLE, "01:-:-:-:1 FADD R2, R1, R0"] * 8, warps=4)
    eight = cycles(*[SHUFFLE, "01:-:-:-:1 FADD R2, R1, R0"] * 8, warps=32)
    assert alone < eight < 2 * alone


def test_no_warp_passes_a_barrier_before_the_last_has_come():
    # The last of eight warps arrives at 1, eight arrivals take the barrier until 16, and 21 more.
    late = ("--:-:-:-:1 BAR.SYNC.DEFER_BLOCKING 0x0", "FADD R2, R1, R0")
    assert cycles(*late, warps=8) == 37 + 4
    assert cycles("BAR.ARV 0x0, 0x40", "FADD R2, R1, R0", warps=8) == 6


def test_a_pipe_of_half_rate_takes_every_other_cycle():
    additions = [f"FADD R{n}, R0, R1" for n in range(2, 66)]
    assert cycles(*additions, target="sm_90") == 65
    assert cycles(*additions, target="sm_80") == 2 * 64


def test_depbar_leaves_as_many_under_way_as_it_says():
    copy = "LDGSTS.E.BYPASS.128 [R9], [R2.64]"
    two = (copy, "--:-:0:-:1 LDGDEPBAR", copy, "--:-:0:-:1 LDGDEPBAR")
    first = cycles(*two, "DEPBAR.LE SB0, 0x1")
    both = cycles(*two, "DEPBAR.LE SB0, 0x0")
    assert 35 < first < both
    assert cycles(*two) == 5


def test_loads_from_memory_take_longer_and_the_path_from_l2_is_narrow():
    one = measure(code(LOAD, "01:-:-:-:1 FADD R2, R4, R0", "EXIT"), "sm_90", 1)
    many = measure(code(*[LOAD] * 8, "01:-:-:-:1 FADD R2, R4, R0", "EXIT"), "sm_90", 1)
    assert one.cycles_memory - one.cycles == 479 - 35 + 512 // 64
    assert many.cycles_memory - one.cycles_memory == 7 * 512 // 64


class EveryCycle:
    """The same machine, slowly: every cycle, each scheduler looks at each of its warps."""

    def __init__(self, path, warps):
        self.path = path
        self.warps = [simulate.Warp() for _ in range(warps)]
        self.free = {}
        self.arrived = {}

    def run(self):
        clock = last = 0
        while any(warp.at < len(self.path) for warp in self.warps):
            for scheduler in range(4):
                ready = [
                    number
                    for number in range(scheduler, len(self.warps), 4)
                    if self.can_issue(number, clock)
                ]
                if ready:
                    self.issue(min(ready, key=self.ready_since), clock)
                    last = clock
            clock += 1
        return last + 1

    def pipe(self, number):
        pipe = self.path[self.warps[number].at].pipe
        return pipe.name if pipe.shared else (pipe.name, number % 4)

    def ready_since(self, number):
        warp = self.warps[number]
        waits = self.path[warp.at].waits
        return max([warp.ready, *(warp.done(board, left) for board, left in waits)])

    def can_issue(self, number, clock):
        warp = self.warps[number]
        if warp.at == len(self.path) or number in self.arrived:
            return False
        shared = self.path[warp.at].pipe.shared
        free = shared or self.free.get(self.pipe(number), 0) <= clock
        return free and self.ready_since(number) <= clock

    def issue(self, number, clock):
        warp = self.warps[number]
        step = self.path[warp.at]
        done = max(clock, self.free.get(self.pipe(number), 0)) + step.occupied
        self.free[self.pipe(number)] = done
        if step.fill:
            self.free["fill"] = max(done, self.free.get("fill", 0)) + step.fill
        result = (self.free["fill"] if step.fill else done) + step.latency
        if step.gathers is not None:
            result = max(result, *warp.under_way[step.gathers], 0)
        for board, at in ((step.write, result), (step.read, done)):
            if board is not None:
                warp.under_way[board].append(at)
        warp.at += 1
        warp.ready = clock + step.stall
        if step.barrier:
            self.arrived[number] = result
            if len(self.arrived) == len(self.warps):
                for each in self.arrived:
                    opens = max(self.arrived.values())
                    self.warps[each].ready = max(self.warps[each].ready, opens)
                self.arrived = {}


@pytest.mark.parametrize("memory", (False, True))
@pytest.mark.parametrize("warps", (1, 3, 4, 8, 16))
@pytest.mark.parametrize("kernel", ("sum_tile", "welford_tile"))
def test_jumping_from_issue_to_issue_is_going_cycle_by_cycle(kernel, warps, memory):
    tile = {"M": 8, "N": 128, "AXIS": 1, "ORDER": None}
    program = sass.parse(compile(getattr(kernels, kernel), SM90, **tile).asm["sass"])
    steps = nvidia.steps(program, "sm_90", memory)
    path = [steps[at] for at in nvidia.way(program, trips=4)]
    assert simulate.cycles(path, warps) == EveryCycle(path, warps).run()


# The way that a warp takes


def test_a_loop_runs_as_often_as_it_is_told():
    loop = ("LBB1:", "FADD R2, R2, R1", "@P0 BRA LBB1")
    assert [cycles(*loop, trips=n) for n in (1, 2, 10)] == [3, 5, 21]


def test_an_endless_loop_is_left_through_its_exit():
    ways = {1: Way(Kind.NEVER, 5), 3: Way(Kind.ALWAYS, 0), 6: Way(Kind.END)}
    assert flow.path(ways, 2, [(0,)] * 7) == [0, 1, 2, 3] * 2 + [5, 6]


def test_an_inner_loop_starts_anew_with_every_round_of_the_outer_one():
    ways = {1: Way(Kind.MAYBE, 1), 2: Way(Kind.MAYBE, 0), 3: Way(Kind.END)}
    assert flow.path(ways, 2, [(0,)] * 4) == [0, 1, 1, 2] * 2 + [3]


def test_a_poll_is_left_at_once():
    spin = ("LBB1:", "SYNCS.PHASECHK.TRANS64.TRYWAIT P4, [UR16], R8", "@!P4 BRA LBB1")
    assert cycles(*spin, trips=100) == cycles(*spin, trips=1)
    # A loop that polls along the way, but closes on a count, is a loop.
    counts = ("LBB1:", spin[1], "ISETP.NE.AND P4, PT, R0, RZ, PT", "@P4 BRA LBB1")
    assert cycles(*counts, trips=100) > 100


def test_slow_paths_behind_a_check_are_not_taken():
    slow = ("MUFU.RCP R3, R4",) * 4
    checked = (
        "FCHK P0, R4, R5",
        "@!P0 BRA LBB1",
        "CALL.REL.NOINC 0x60",
        "LBB1:",
        "FADD R2, R1, R0",
    )
    text = code(*checked, "EXIT", "NOP", *slow, "RET.REL.NODEC R8 0x0")
    assert sass.parse(text).ways[1] == Way(Kind.ALWAYS, 3)
    taken = flow.path(sass.parse(text).ways, 4, [(0,)] * 13)
    assert taken == [0, 1, 3, 4]


def test_a_loop_may_be_left_by_a_call_that_does_not_return():
    body = ("FADD R2, R2, R1", "@!P0 CALL.REL.NOINC 0x40", "BRA LBB1")
    text = code("@!P1 BRA LBB2", "LBB1:", *body, "LBB2:", "FADD R3, R3, R1", "EXIT")
    found = sass.parse(text)
    assert [found.ways[at] for at in (0, 2)] == [Way(Kind.NEVER, 4)] * 2
    assert flow.path(found.ways, 3, [(0,)] * 6) == [0, *(1, 2, 3) * 3, 4, 5]


@pytest.mark.parametrize("trips", range(1, 14))
def test_an_unrolled_loop_does_the_work_of_the_rolled_one(trips):
    body = (LOAD, "01:-:-:-:1 FADD R2, R2, R4")
    rolled = code("LBB1:", *body, "@P0 BRA LBB1", "EXIT")
    unrolled = code(
        "LBB1:", *body * 4, "@P0 BRA LBB1",
        "@!P1 BRA LBB2", *body * 2, "LBB2:",
        "@!P2 BRA LBB4", "LBB3:", *body, "@P0 BRA LBB3", "LBB4:", "EXIT",
    )  # fmt: skip
    # A round before it, so that an even number is left; constants are moved by any pipe.
    peeled = code(
        "@P3 BRA LBB0", "HFMA2 R2, -RZ, RZ, 0, 0", *body, "LBB0:",
        "@!P0 BRA LBB2", "LBB1:", *body * 2, "@P0 BRA LBB1", "LBB2:",
        "@!P2 BRA LBB4", *body, "LBB4:", "EXIT",
    )  # fmt: skip
    told = [measure(text, "sm_90", 4, trips).path_sectors for text in (rolled, unrolled, peeled)]
    assert told == [trips * 512 * 4 // 32] * 3


def test_loops_that_differ_in_what_they_do_are_not_taken_for_one_unrolled():
    loop, other = (LOAD, "FADD R2, R2, R4"), (LOAD, LOAD, "FMUL R2, R2, R4", SHUFFLE)
    text = code("LBB1:", *other, "@P0 BRA LBB1", "LBB2:", *loop, "@P0 BRA LBB2", "EXIT")
    assert measure(text, "sm_90", 1, 4).path_sectors == 4 * 3 * 512 // 32


def test_a_loop_before_an_unrolled_one_is_no_round_of_it():
    body = (LOAD, "01:-:-:-:1 FADD R2, R2, R4")
    text = code(
        "LBB0:", *body, "@P0 BRA LBB0",
        "LBB1:", *body * 4, "@P0 BRA LBB1",
        "@!P2 BRA LBB4", "LBB3:", *body, "@P0 BRA LBB3", "LBB4:", "EXIT",
    )  # fmt: skip
    assert measure(text, "sm_90", 1, 8).path_sectors == 2 * 8 * 512 // 32


def test_one_respect_is_no_evidence_of_unrolling():
    add = "FADD R2, R2, R1"
    loop = ("LBB1:", add, add, "@P0 BRA LBB1", "@P1 BRA LBB2", add, "LBB2:")
    assert cycles(*loop, trips=4) == 4 * 3 + 2 + 1


# AMD


ASSEMBLY = """
kernel:                                 ; @kernel
\ts_load_dwordx2 s[2:3], s[0:1], 0x0
\ts_waitcnt lgkmcnt(0)
\ts_branch .LBB0_0
\t.p2align\t8
.LBB0_0:
{}
\ts_endpgm
\t.section\t.rodata,"a",@progbits
\t.amdhsa_kernel kernel
\t\t.amdhsa_private_segment_fixed_size 16
\t\t.amdhsa_user_sgpr_kernarg_preload_length 8
\t\t.amdhsa_next_free_vgpr 21
"""


def wave(*lines, warps=4, target="gfx942", trips=4):
    body = "\n".join(line if line.endswith(":") else "\t" + line for line in lines)
    return measure(ASSEMBLY.format(body), target, warps, trips)


def test_amd_counts():
    found = wave(
        "v_add_f32_dpp v2, v6, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        "ds_swizzle_b32 v3, v2 offset:swizzle(SWAP,16)",
        "v_permlane32_swap_b32_e32 v2, v3",
        "v_add_f32_e32 v2, v3, v2                     ; a comment",
        "ds_write2st64_b64 v4, v[2:3], v[6:7] offset1:1",
        "s_barrier",
        "ds_read_b128 v[4:7], v3",
        "global_load_dwordx4 v[2:5], v2, s[0:1]",
        "buffer_store_short v3, v0, s[4:7], 0 offen",
    )
    # Old firmware's loads of the arguments are not executed, and not counted.
    assert found.instructions == 10
    assert (found.shuffles, found.shuffle_slots) == (3, 1 + 3 + 2)
    assert (found.shared_loads, found.shared_stores, found.barriers) == (1, 1, 1)
    assert found.shared_transactions == 2 * (4 + 4)
    assert found.global_sectors == (16 + 2) * 64 * 4 // 32
    assert (found.registers, found.stack_bytes) == (21, 16)


def test_amd_waits_for_all_but_some():
    loads = ["global_load_dwordx4 v[2:5], v2, s[0:1]"] * 4
    waits = [wave(*loads, f"s_waitcnt vmcnt({n})").cycles for n in (0, 1, 2, 3)]
    assert waits == sorted(waits, reverse=True) and len(set(waits)) == 4
    assert wave(*loads, "s_waitcnt lgkmcnt(0)").cycles < waits[-1]
    read = "ds_read_b32 v2, v3"
    assert wave(read, "s_waitcnt lgkmcnt(0)").cycles > 64 > wave(read, "s_waitcnt vmcnt(0)").cycles


def test_amd_issues_every_fourth_cycle_and_nops_are_states():
    step = "v_add_f32_e32 v2, v3, v2"
    assert wave(*[step] * 10).cycles - wave(step).cycles == 9 * 4
    assert wave("s_nop 4", step).cycles - wave(step).cycles == 5 * 4


@pytest.mark.parametrize(
    ("instruction", "target", "each"),
    (
        ("v_permlane32_swap_b32_e32 v2, v3", "gfx950", 8),
        ("v_rcp_f32_e32 v2, v3", "gfx942", 16),
        ("v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]", "gfx942", 32),
        ("v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]", "gfx950", 32),
        ("v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]", "gfx942", 64),
    ),
)
def test_amd_pipes(instruction, target, each):
    ten, one = (wave(*[instruction] * n, target=target).cycles for n in (10, 1))
    assert ten - one == 9 * each


def test_amd_loops_run_as_often_as_they_are_told():
    loop = (".LBB0_1:", "v_add_f32_e32 v2, v3, v2", "s_cbranch_scc1 .LBB0_1")
    assert wave(*loop, trips=9).cycles - wave(*loop, trips=4).cycles == 5 * 2 * 4


# Compiled kernels


@triton.jit
def sum_chained(x, out, steps, N: tl.constexpr, ORDER: tl.constexpr):
    total = 0.0
    for step in range(steps):
        total += tl.sum(tl.load(x + step * N + tl.arange(0, N)), axis=0, order=ORDER)
    tl.store(out, total)


@pytest.mark.parametrize("order", (None, "inner_tree"))
@pytest.mark.parametrize("target", (SM90, GFX942), ids=lambda target: str(target.arch))
def test_loops_of_compiled_kernels_do_the_work_of_their_trips(target, order):
    made = compile(sum_chained, target, "x:fp32 out:fp32 steps:i32", N=1024, ORDER=order)
    nvidia = target.backend == "cuda"
    asm = made.asm["sass" if nvidia else "amdgcn"]
    few, many = (
        measure(asm, f"sm_{target.arch}" if nvidia else target.arch, 4, trips) for trips in (8, 16)
    )
    assert many.path_sectors - few.path_sectors == 8 * 1024 * 4 // 32
    assert 1.5 < many.cycles / few.cycles < 2.1
    assert few.cycles < few.cycles_memory


def test_the_same_text_gives_the_same_figures():
    asm = compile(kernels.sum_tile, SM90, M=16, N=256, AXIS=1, ORDER=None).asm["sass"]
    assert measure(asm, "sm_90", 8) == measure(asm, "sm_90", 8)


# Occupancy


@pytest.mark.parametrize(
    ("target", "warps", "registers", "shared", "resident"),
    (
        ("sm_90", 4, 32, 0, 64),
        ("sm_90", 4, 33, 0, 48),  # 40 registers each: 12 warps a scheduler
        ("sm_90", 4, 255, 0, 8),
        ("sm_90", 1, 16, 0, 32),  # 32 blocks
        ("sm_90", 8, 32, 100 << 10, 16),
        ("sm_90", 4, 16, 28 << 10, 28),  # 29 KiB each: 7 blocks
        ("sm_80", 8, 32, 100 << 10, 8),
        ("sm_80", 32, 72, 0, 0),
        ("gfx942", 4, 64, 0, 8),
        ("gfx942", 4, 129, 0, 3),
        ("gfx942", 4, 16, 33 << 10, 1),
        ("gfx950", 4, 16, 33 << 10, 4),
    ),
)
def test_occupancy(target, warps, registers, shared, resident):
    assert occupancy(target, warps, registers, shared) == resident


# What it refuses


@pytest.mark.parametrize(
    ("text", "target", "says"),
    (
        ("\tMOV R1, c[0x0][0x28];\n", "sm_90", "no instructions in the disassembly"),
        ("v_add_f32 v0, v1, v2\n", "gfx942", "no kernel in the assembly"),
        (code("EXIT"), "sm_75", "no cost data for sm_75"),
        (ASSEMBLY.format("\ts_nop 0"), "gfx1201", "no cost data for gfx1201"),
    ),
)
def test_what_it_does_not_know_is_refused(text, target, says):
    with pytest.raises(ValueError, match=says):
        measure(text, target, 4)


def test_occupancy_of_an_unknown_target_is_refused():
    with pytest.raises(ValueError, match="no limits for sm_75"):
        occupancy("sm_75", 4, 32, 0)


def test_amd_widths():
    widths = {
        "ds_read_b128": 16, "ds_read2_b32": 8, "ds_write2st64_b64": 16, "ds_read_u16": 2,
        "ds_read_b64_tr_b16": 8, "global_load_dword": 4, "global_load_dwordx3": 12,
        "buffer_load_ushort": 2, "global_load_short_d16_hi": 2, "global_store_byte": 1,
    }  # fmt: skip
    assert {name: amdgcn.Instruction(name, "").bytes for name in widths} == widths
