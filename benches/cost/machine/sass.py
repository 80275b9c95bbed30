"""Reads `asm["sass"]` of a Triton kernel: opcodes, control words, branches.

# Idea
Triton prints each instruction as `wait:read:write:yield:stall<TAB>guard opcode operands;`, the five
control fields decoded from the 128-bit word, and names branch targets `LBBn`. That text is all that
is read: the control words say when ptxas lets an instruction go, which is what a static estimate
needs.

# Invariants
- **S1** Every line with control fields becomes one [`Instruction`]; a text without any is refused.
- **S2** What stands behind the last exit to fill up (NOPs, a branch to itself) is no instruction.

# What a branch does
Beyond the rules of `flow.py`: a guarded branch over the call of a subroutine is taken, as those are
slow paths of division and square root, which ptxas puts behind a check. A guarded exit is not
taken, as some warp does the work after it. A loop that polls (a branch on the result of `TRYWAIT`,
or around a `NANOSLEEP`) is left at once.

# Not here
What an instruction costs (`latency.py`), when it issues (`simulate.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .flow import Kind, Way

LINE = re.compile(
    r"^(?P<wait>\d\d|--):(?P<read>[0-7-]):(?P<write>[0-7-]):[Y-]:(?P<stall>[0-9a-f])\t"
    r"(?P<guard>@!?U?P\w+\s+)?(?P<opcode>[A-Z][A-Za-z0-9_.]*)\s*(?P<operands>[^;]*);"
)
LABEL = re.compile(r"^(LBB\d+):")
TARGET = re.compile(r"\b(LBB\d+|0x[0-9a-f]+)\s*$")
REGISTER = re.compile(r"(?<![A-Z])R(\d+)\b")
STACK = re.compile(r"^R1, (?:PT, PT, )?R1, -(0x[0-9a-f]+)")

WORD_BYTES = 16
"""Of one instruction's encoding: what a branch's address counts in."""

RESERVED_REGISTERS = 2
"""ptxas reports two registers more than the highest that the text names (160 of 168 cubins)."""


@dataclass(frozen=True)
class Instruction:
    """One line: what to do, and what ptxas told the scheduler about it."""

    opcode: str
    operands: str
    guard: str | None
    """The predicate that it is executed under, without its sign."""
    waits: int
    """Mask of the scoreboards that must be clear before it issues."""
    read: int | None
    """Scoreboard that clears when its operands have been read."""
    write: int | None
    """Scoreboard that clears when its result is there."""
    stall: int
    """Cycles before the warp's next instruction may issue."""

    @property
    def kind(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def words(self) -> int:
        """Four-byte words that each lane moves, for a memory access.

        Matrix accesses (`.M88.4`) move one for each matrix, those of tensor memory say how many.
        """
        modifiers = self.opcode.split(".")[1:]
        if self.kind in ("LDSM", "STSM"):
            return int(modifiers[-1]) if modifiers[-1].isdigit() else 1
        if self.kind in ("LDTM", "STTM"):
            return int(modifiers[-1].removeprefix("x")) if modifiers else 1
        return 4 if "128" in modifiers else 2 if "64" in modifiers else 1

    @property
    def bytes(self) -> int:
        """Bytes that each lane moves, for a memory access."""
        modifiers = self.opcode.split(".")[1:]
        if {"U8", "S8"} & set(modifiers):
            return 1
        if {"U16", "S16"} & set(modifiers):
            return 2
        return 4 * self.words


@dataclass(frozen=True)
class Program:
    """The instructions of one kernel, without padding, and where its branches go."""

    instructions: list[Instruction]
    ways: dict[int, Way]

    @property
    def registers(self) -> int:
        """What ptxas reports as used, to within one: see `RESERVED_REGISTERS`."""
        highest = -1
        for instruction in self.instructions:
            named = [int(number) for number in REGISTER.findall(instruction.operands)]
            if not named:
                continue
            # A wide access names the first of its registers alone.
            loads = instruction.kind in ("LDG", "LDS", "LDL", "LDSM", "LDC")
            wide = instruction.words - 1 if loads or instruction.kind.startswith("ST") else 0
            highest = max(highest, (named[0] if loads else named[-1]) + wide, *named)
        return min(highest + 1 + RESERVED_REGISTERS, 255)

    @property
    def stack_bytes(self) -> int:
        """What the prologue takes from the stack pointer."""
        for instruction in self.instructions:
            if match := STACK.match(instruction.operands):
                return int(match[1], 16)
        return 0


def parse(text: str) -> Program:
    """The first function of a disassembly in Triton's format."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if label := LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif match := LINE.match(line):
            instructions.append(_instruction(match))
        elif line.startswith("Function:") and instructions:
            break
    if not instructions:
        raise ValueError('no instructions in the disassembly: is it asm["sass"] of Triton 3.9?')
    targets = dict(_targets(instructions, labels))
    while instructions and (
        instructions[-1].kind == "NOP"
        or targets.get(len(instructions) - 1) == len(instructions) - 1
    ):
        instructions.pop()
    return Program(instructions, dict(_ways(instructions, targets)))


def _instruction(match: re.Match[str]) -> Instruction:
    def scoreboard(field: str) -> int | None:
        return None if match[field] == "-" else int(match[field])

    return Instruction(
        match["opcode"],
        match["operands"],
        guard=None if match["guard"] is None else match["guard"].strip().lstrip("@!"),
        waits=0 if match["wait"] == "--" else int(match["wait"]),
        read=scoreboard("read"),
        write=scoreboard("write"),
        stall=int(match["stall"], 16),
    )


def _targets(instructions: list[Instruction], labels: dict[str, int]) -> Iterator[tuple[int, int]]:
    for at, instruction in enumerate(instructions):
        if instruction.kind not in ("BRA", "CALL"):
            continue
        if match := TARGET.search(instruction.operands):
            name = match[1]
            to = labels[name] if name in labels else int(name, 16) // WORD_BYTES
            if to < len(instructions):
                yield at, to


def _ways(instructions: list[Instruction], targets: dict[int, int]) -> Iterator[tuple[int, Way]]:
    for at, instruction in enumerate(instructions):
        match instruction.kind:
            case "EXIT" if instruction.guard is None:
                yield at, Way(Kind.END)
            case "RET" if instruction.guard is None:
                yield at, Way(Kind.RETURN)
            case "CALL" if at in targets and not _jumps(instructions, targets, at):
                yield at, Way(Kind.CALL, targets[at])
            case "BRA" | "CALL" if at in targets:
                yield at, _branch(instructions, targets, at)


def _jumps(instructions: list[Instruction], targets: dict[int, int], at: int) -> bool:
    """Whether a call goes where no return follows: compilers also leave loops that way."""
    return at in targets and all(each.kind != "RET" for each in instructions[targets[at] :])


def _branch(instructions: list[Instruction], targets: dict[int, int], at: int) -> Way:
    target, instruction = targets[at], instructions[at]
    condition = instruction.guard
    if "," in instruction.operands:
        # A branch on a uniform predicate has it among its operands.
        condition = instruction.operands.partition(",")[0].lstrip("!")
    if condition is None:
        return Way(Kind.ALWAYS, target)
    if target > at:
        slow = any(
            instructions[each].kind == "CALL" and not _jumps(instructions, targets, each)
            for each in range(at + 1, target)
        )
        return Way(Kind.ALWAYS if slow else Kind.NEVER, target)
    return Way(Kind.NEVER if _polls(instructions[target:at], condition) else Kind.MAYBE, target)


def _polls(body: list[Instruction], condition: str) -> bool:
    """Whether a loop waits for others, rather than counting."""
    if any(each.kind == "NANOSLEEP" for each in body):
        return True
    for each in reversed(body):
        if each.operands.startswith(condition + ","):
            return "TRYWAIT" in each.opcode
    return False
