"""Reads `asm["amdgcn"]` of a Triton kernel: instructions, branches, and what the metadata say.

# Idea
LLVM's assembly is one instruction a line, its waits spelled out (`s_waitcnt vmcnt(3)`), its
resources in `.amdhsa_` directives. A kernel whose arguments are preloaded into scalar registers
begins with code for firmware that cannot do so; others start behind it, and so does the reader.

# Invariants
- **G1** Every line of the kernel that is neither directive, label nor comment is an
  [`Instruction`]; a text without a kernel is refused.

# Not here
What an instruction costs, and in which order they issue: `amd.py`, `simulate.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .flow import Kind, Way

KERNEL = re.compile(r"^\t\.amdhsa_kernel (\S+)", re.MULTILINE)
LINE = re.compile(r"^\t(?P<opcode>[a-z]\w*)\s*(?P<operands>[^;]*)")
LABEL = re.compile(r"^(\.\w+):")
WIDTH = re.compile(r"(?:b|u|i)(\d+)$|dword(?:x(\d))?$|(?:u|s)?(short|byte)")


@dataclass(frozen=True)
class Instruction:
    """One line: the opcode without its encoding's suffix, and its operands."""

    opcode: str
    operands: str

    @property
    def bytes(self) -> int:
        """That each lane moves, for a memory access."""
        name = self.opcode.removesuffix("_d16_hi").removesuffix("_d16")
        name = re.sub(r"_tr_b\d+$", "", name)
        if not (width := WIDTH.search(name)):
            return 4
        if width[3]:
            return 1 if width[3] == "byte" else 2
        each = int(width[1]) // 8 if width[1] else 4 * int(width[2] or 1)
        # ds_read2, ds_write2st64: two places at once.
        return 2 * each if re.search(r"_(read|write)2", name) else each

    @property
    def words(self) -> int:
        """Four-byte words that each lane moves."""
        return max(self.bytes // 4, 1)

    @property
    def crosses_lanes(self) -> bool:
        """Whether a vector instruction reads other lanes: DPP's operand, permlane, readlane."""
        return self.opcode.endswith("_dpp") or self.opcode.startswith(("v_permlane", "v_readlane"))


@dataclass(frozen=True)
class Program:
    """The instructions of one kernel, where its branches lead, and its resources."""

    instructions: list[Instruction]
    ways: dict[int, Way]
    registers: int
    """Vector registers, accumulation registers included."""
    stack_bytes: int


def parse(text: str) -> Program:
    """The first kernel of an assembly text."""
    if not (kernel := KERNEL.search(text)):
        raise ValueError('no kernel in the assembly: is it asm["amdgcn"] of Triton 3.9?')
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{kernel[1]}:"))
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in lines[start + 1 :]:
        if line.startswith("\t.section") and instructions:
            break
        if label := LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif match := LINE.match(line):
            opcode = re.sub(r"_(e32|e64)(?=_|$)", "", match["opcode"])
            instructions.append(Instruction(opcode, match["operands"].strip()))
    preloaded = _directive(text, "user_sgpr_kernarg_preload_length") > 0
    skipped = 0
    if preloaded and (first := _first_branch(instructions)) is not None:
        skipped = first + 1
    kept = instructions[skipped:]
    targets = {name: at - skipped for name, at in labels.items()}
    return Program(
        kept,
        dict(_ways(kept, targets)),
        _directive(text, "next_free_vgpr"),
        _directive(text, "private_segment_fixed_size"),
    )


def _directive(text: str, name: str) -> int:
    match = re.search(rf"\.amdhsa_{name} (\d+)", text)
    return int(match[1]) if match else 0


def _first_branch(instructions: list[Instruction]) -> int | None:
    """Where the loads of arguments for old firmware end, if the kernel begins with them."""
    for at, instruction in enumerate(instructions):
        if instruction.opcode == "s_branch":
            return at
        if not instruction.opcode.startswith(("s_load", "s_waitcnt")):
            return None
    return None


def _ways(instructions: list[Instruction], targets: dict[str, int]) -> Iterator[tuple[int, Way]]:
    for at, instruction in enumerate(instructions):
        target = targets.get(instruction.operands, at + 1)
        if instruction.opcode == "s_endpgm":
            yield at, Way(Kind.END)
        elif instruction.opcode == "s_branch":
            yield at, Way(Kind.ALWAYS, target)
        elif instruction.opcode.startswith("s_cbranch"):
            yield at, Way(Kind.MAYBE if target <= at else Kind.NEVER, target)
