"""Reads `asm["sass"]` of a Triton kernel: opcodes, control words, and the way a warp takes.

# Idea
Triton prints each instruction as `wait:read:write:yield:stall<TAB>guard opcode operands;`, the five
control fields decoded from the 128-bit word, and names branch targets `LBBn`. That text is all that
is read: the control words say when ptxas lets an instruction go, which is what a static estimate
needs.

# Invariants
- **S1** Every line with control fields becomes one [`Instruction`]; a text without any is refused.
- **S2** The path is a function of the text and `trips`; data never enter.
- **S3** The path of a kernel ends at an unguarded exit.

# What a branch does
Values are unknown, so that the shape decides: an unguarded branch is taken; a guarded one backward
closes a loop, whose body runs `trips` times in all; a guarded one forward falls through, unless the
code that it jumps over calls a subroutine: those are slow paths of division and square root, which
ptxas puts behind a check. A guarded exit falls through, as some warp does the work after it. A loop
that polls (a branch on the result of `TRYWAIT`, or around a `NANOSLEEP`) is left at once.

# Not here
What an instruction costs (`latency.py`), when it issues (`simulate.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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

MAX_PATH = 1_000_000
"""Instructions on the path of one warp; beyond it, the loops are not what a reduction has."""


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
    targets: dict[int, int]
    """Index of a branch or call to the index of what it goes to."""

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

    def path(self, trips: int) -> list[int]:
        """The instructions that a warp executes, in order, by the rules of the module's head."""
        path: list[int] = []
        taken: dict[int, int] = {}
        returns: list[int] = []
        at = 0
        while at < len(self.instructions):
            instruction = self.instructions[at]
            path.append(at)
            if len(path) > MAX_PATH:
                raise ValueError(f"a warp's path is longer than {MAX_PATH} instructions")
            following = at + 1
            match instruction.kind:
                case "EXIT" if instruction.guard is None:
                    break
                case "CALL" if at in self.targets:
                    returns.append(following)
                    following = self.targets[at]
                case "RET" if returns and instruction.guard is None:
                    following = returns.pop()
                case "BRA" if at in self.targets and self._taken(at, taken, trips):
                    following = self.targets[at]
            at = following
        return path

    def _taken(self, at: int, taken: dict[int, int], trips: int) -> bool:
        instruction, target = self.instructions[at], self.targets[at]
        # A branch on a uniform predicate has it among its operands.
        condition = instruction.guard
        if "," in instruction.operands:
            condition = instruction.operands.partition(",")[0].lstrip("!")
        if target > at:
            skipped = self.instructions[at + 1 : target]
            return condition is None or any(each.kind == "CALL" for each in skipped)
        if condition is not None and self._polls(self.instructions[target:at], condition):
            return False
        # An inner loop starts anew each time that the outer one comes back to it.
        taken[at] = (taken.get(at, 0) + 1) % max(trips, 1)
        return taken[at] != 0

    @staticmethod
    def _polls(body: list[Instruction], condition: str) -> bool:
        """Whether a loop waits for others, rather than counting."""
        if any(each.kind == "NANOSLEEP" for each in body):
            return True
        for each in reversed(body):
            if each.operands.startswith(condition + ","):
                return "TRYWAIT" in each.opcode
        return False


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
        targets.pop(len(instructions) - 1, None)
        instructions.pop()
    return Program(instructions, targets)


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
