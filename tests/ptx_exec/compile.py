"""Instructions to closures: operands are resolved once, then run many times.

A handler takes (context, instruction) and returns a function of the CTA. Handlers register under
the first part of the opcode and must reject every modifier they do not know.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .errors import Divergence, PtxError, Uninitialised, UnknownPtx
from .floats import UNSIGNED
from .machine import LANES, POISON, Cta, Schedule, constant
from .parser import Imm, Inst, Operand, Program, Reg, Sym, registers
from .symbolic import Pieces

Step = Callable[[Cta], None]
Control = Callable[[Cta, Schedule], None]
Reader = Callable[[Cta], np.ndarray]
HANDLERS: dict[str, Callable[["Context", Inst], Step]] = {}
SHARED_BASE = 0x400


def handles(*names: str):
    """Registers a handler for opcodes that start with one of `names`."""

    def register(handler):
        for name in names:
            assert name not in HANDLERS, name
            HANDLERS[name] = handler
        return handler

    return register


_SPECIAL: dict[str, Callable[[Cta], np.ndarray | int]] = {
    "%tid.x": lambda cta: cta.tid,
    "%tid.y": lambda cta: 0,
    "%tid.z": lambda cta: 0,
    "%ntid.x": lambda cta: cta.threads,
    "%ctaid.x": lambda cta: cta.ctaid[0],
    "%ctaid.y": lambda cta: cta.ctaid[1],
    "%ctaid.z": lambda cta: cta.ctaid[2],
    "%nctaid.x": lambda cta: cta.grid[0],
    "%nctaid.y": lambda cta: cta.grid[1],
    "%nctaid.z": lambda cta: cta.grid[2],
    "%laneid": lambda cta: cta.tid % LANES,
}


class Context:
    """Names to slots for one program and one list of arguments' layout."""

    def __init__(self, program: Program, options: frozenset[str]) -> None:
        self.program, self.options, self.threads = program, options, program.threads
        self.slots = {name: slot for slot, name in enumerate(program.registers)}
        # LLVM leaves a register that no instruction writes where the value does not matter.
        destinations = [inst.operands[0] for inst in program.insts if inst.operands]
        self.written = {reg.name for target in destinations for reg in registers(target)}
        self.params = {name: at for at, (name, _) in enumerate(program.params)}

    def bits(self, reg: Reg) -> int:
        """A register's declared width; 1 for a predicate."""
        if reg.name not in self.program.registers:
            raise PtxError(f"register {reg.name} is not declared")
        return self.program.registers[reg.name]

    def destination(self, operand: Operand, width: int) -> int:
        """The slot of a destination register of exactly `width` bits."""
        if not isinstance(operand, Reg) or self.bits(operand) != width:
            raise UnknownPtx(f"destination {operand} does not hold {width} bits")
        return self.slots[operand.name]

    def reader(self, operand: Operand, width: int) -> Reader:
        """Reads an operand as unsigned bits of `width`; predicates have width 1."""
        if isinstance(operand, Imm):
            if operand.width not in (0, width) or width == 1:
                raise UnknownPtx(f"immediate {operand} in a place of {width} bits")
            fixed = constant(operand.value, width, self.threads)
            return lambda cta: fixed
        if isinstance(operand, Sym) and operand.name == "global_smem" and width in (32, 64):
            base = constant(SHARED_BASE, width, self.threads)
            return lambda cta: base
        if isinstance(operand, Reg) and operand.name in _SPECIAL and width == 32:
            special = _SPECIAL[operand.name]
            dtype, threads = UNSIGNED[width], self.threads
            return lambda cta: np.broadcast_to(np.asarray(special(cta), dtype), (threads,))
        if not isinstance(operand, Reg) or self.bits(operand) != width:
            raise UnknownPtx(f"operand {operand} does not hold {width} bits")
        slot, name = self.slots[operand.name], operand.name
        if name not in self.written and width > 1:
            undefined = constant(POISON, width, self.threads)
            return lambda cta: undefined

        def read(cta: Cta) -> np.ndarray:
            value = cta.regs[slot]
            if value is None:
                raise Uninitialised(f"register {name} was never written")
            return value

        return read

    def pieces(self, operand: Operand) -> Callable[[Cta], Pieces]:
        """Reads an operand's pieces."""
        if isinstance(operand, Reg) and operand.name in self.slots:
            slot = self.slots[operand.name]
            return lambda cta: cta.pieces[slot]
        return lambda cta: None


def operation(
    ctx: Context, inst: Inst, widths: tuple[int, ...], compute: Callable, shadow: Callable
) -> Step:
    """A step with one destination (`widths[0]`) and sources.

    `compute` maps source bits to result bits; `shadow(cta, values, pieces)` gives result pieces.
    """
    if len(inst.operands) != len(widths):
        raise inst.unknown(f"expected {len(widths)} operands")
    slot = ctx.destination(inst.operands[0], widths[0])
    sources = list(zip(inst.operands[1:], widths[1:], strict=True))
    readers = [ctx.reader(operand, width) for operand, width in sources]
    trackers = [ctx.pieces(operand) for operand, _ in sources]
    width = widths[0]

    def step(cta: Cta) -> None:
        values = [read(cta) for read in readers]
        cta.write(slot, compute(*values))
        if cta.graph is not None:
            pieces = [track(cta) for track in trackers]
            if any(piece is not None for piece in pieces):
                cta.write_pieces(slot, width, shadow(cta, values, pieces))
            else:
                cta.write_pieces(slot, width, None)

    return step


def guarded(ctx: Context, inst: Inst, step: Step) -> Step:
    """Runs `step` under the instruction's guard predicate."""
    if inst.guard is None:
        return step
    read = ctx.reader(Reg(inst.guard), 1)
    negated = inst.negated

    def run(cta: Cta) -> None:
        outer, full = cta.mask, cta.full
        taken = read(cta)
        cta.mask = outer & (~taken if negated else taken)
        if cta.mask.any():
            cta.full = bool(cta.mask.all())
            step(cta)
        cta.mask, cta.full = outer, full

    return run


def _branch(ctx: Context, inst: Inst) -> Control:
    if inst.op[1:] not in ((), ("uni",)) or len(inst.operands) != 1:
        raise inst.unknown("branch form is not known")
    label = inst.operands[0]
    if not isinstance(label, Sym) or label.name not in ctx.program.labels:
        raise inst.unknown("branch target is not a label of this function")
    target, uniform = ctx.program.labels[label.name], inst.op[1:] == ("uni",)
    read = ctx.reader(Reg(inst.guard), 1) if inst.guard else None

    def control(cta: Cta, schedule: Schedule) -> None:
        taken = np.ones(cta.threads, bool) if read is None else read(cta) ^ inst.negated
        here = cta.mask & taken
        if uniform and here.any() and (here != cta.mask).any():
            raise Divergence("a branch marked uniform diverges")
        schedule.pc[cta.mask] += 1
        schedule.pc[here] = target

    return control


def _barrier(ctx: Context, inst: Inst) -> Control:
    if inst.op != ("bar", "sync") or inst.operands != (Imm(0),) or inst.guard:
        raise inst.unknown("barrier form is not known")

    def control(cta: Cta, schedule: Schedule) -> None:
        schedule.waiting |= cta.mask

    return control


def _return(ctx: Context, inst: Inst) -> Control:
    if inst.op != ("ret",) or inst.operands or inst.guard:
        raise inst.unknown("return form is not known")

    def control(cta: Cta, schedule: Schedule) -> None:
        schedule.exited |= cta.mask

    return control


def _control(ctx: Context, inst: Inst) -> Control | None:
    if inst.op[0] == "bra":
        return _branch(ctx, inst)
    if inst.op[0] == "bar" and inst.op[1:2] != ("warp",):
        return _barrier(ctx, inst)
    return _return(ctx, inst) if inst.op[0] == "ret" else None


@dataclass
class Code:
    """A compiled program: a step or a control transfer per instruction."""

    program: Program
    slots: int
    steps: list[Step | None]
    control: list[Control | None]
    next_control: list[int]


def compile_program(program: Program, options: frozenset[str]) -> Code:
    """Compiles all instructions; an unknown one is an error even if it would not run."""
    ctx = Context(program, options)
    steps: list[Step | None] = []
    controls: list[Control | None] = []
    for inst in program.insts:
        try:
            control = _control(ctx, inst)
            step = None
            if control is None:
                if inst.op[0] not in HANDLERS:
                    raise inst.unknown("instruction is not known")
                step = guarded(ctx, inst, HANDLERS[inst.op[0]](ctx, inst))
        except PtxError as error:
            if error.line:
                raise
            raise type(error)(error.message, inst.line, inst.text) from None
        steps.append(step)
        controls.append(control)
    targets = set(program.labels.values())
    following, stop = [0] * len(steps), len(steps)
    for at in reversed(range(len(steps))):
        if controls[at] is not None:
            stop = at
        following[at] = stop
        if at in targets:
            stop = at
    return Code(program, len(ctx.slots), steps, controls, following)


def bind(code: Code, values: list[int]) -> list[int]:
    """Checks the arguments against the parameters; trailing scratch pointers default to null."""
    params = code.program.params
    missing = params[len(values) :]
    if len(values) > len(params) or any(width != 64 for _, width in missing) or len(missing) > 2:
        raise PtxError(f"{len(values)} arguments for the parameters {params}")
    bound = [*values, *([0] * len(missing))]
    for (name, width), value in zip(params, bound, strict=True):
        if not -(1 << (width - 1)) <= value < 1 << width:
            raise PtxError(f"argument {value} does not fit parameter {name}")
    return bound
