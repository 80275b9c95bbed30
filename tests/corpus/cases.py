"""Cases and their configurations.

# Idea
A [`Case`] is what may be compared: one kernel on one set of arguments. Its axes are what must not,
or may, move its bits: target, warps, stages, fusion, order, and constants that tile the same work.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from triton.bitstable.bits.arguments import Argument, Buffer, Scalar, read
from triton.bitstable.bits.grid import resolve

ORDERS = ("inner_tree", None)
TYPES = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16", "e4m3": "fp8e4nv",
         "e5m2": "fp8e5"}  # fmt: skip


@dataclass(frozen=True)
class Configuration:
    """One way to compile a case. `constants` are those that vary."""

    target: int
    num_warps: int
    num_stages: int
    fp_fusion: bool
    constants: tuple[tuple[str, Any], ...] = ()

    def axes(self) -> dict[str, Any]:
        """Every axis by its name, as the manifest has it."""
        named = {"order" if n == "ORDER" else n: v for n, v in self.constants}
        return {
            "target": f"sm_{self.target}",
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
            "fp_fusion": self.fp_fusion,
            **named,
        }


@dataclass(frozen=True)
class Case:
    """One kernel on one set of arguments. `arguments` are texts, as `triton.bitstable.bits` reads
    them; an axis of the grid (`16 // M, 2`) is an expression over constants and scalars.
    """

    kernel: Any
    arguments: tuple[str, ...]
    grid: str
    constants: dict[str, Any] = field(default_factory=dict)
    axes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    targets: tuple[int, ...] = (80, 90)
    warps: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    stages: tuple[int, ...] = (3,)
    fusion: tuple[bool, ...] = (True, False)
    orders: tuple[str | None, ...] = ORDERS

    @property
    def family(self) -> str:
        """The kernel's name."""
        return self.kernel.__name__

    @property
    def name(self) -> str:
        """Unique in a corpus: kernel, arguments and constants that do not vary."""
        fixed = [f"{name}={value}" for name, value in self.constants.items()]
        return " ".join([self.family, *self.arguments, *fixed])

    def read(self) -> list[Argument]:
        """The arguments, in the kernel's order."""
        names = self.kernel.arg_names
        return sorted(read(self.arguments), key=lambda argument: names.index(argument.name))

    def configurations(self) -> Iterator[Configuration]:
        """All of them; those that may be equal as code follow each other."""
        axes = dict(self.axes)
        if "ORDER" in self.kernel.arg_names:
            axes["ORDER"] = self.orders
        for values in itertools.product(*axes.values()):
            constants = dict(zip(axes, values, strict=True))
            for target, warps, stages, fusion in itertools.product(
                self.targets, self.warps, self.stages, self.fusion
            ):
                yield Configuration(target, warps, stages, fusion, tuple(constants.items()))

    def extent(self, configuration: Configuration) -> tuple[int, int, int]:
        """The grid of a configuration."""
        scalars = {a.name: a.value for a in self.read() if isinstance(a, Scalar)}
        named = {**scalars, **self.constants, **dict(configuration.constants)}
        return (*resolve(self.grid, named), 1, 1)[:3]


def type_of(argument: Argument) -> str:
    """As Triton's signature has it."""
    if isinstance(argument, Buffer):
        element = argument.element.name
        return f"*{TYPES.get(element, element)}"
    return "fp32" if isinstance(argument.value, float) else "i32"


def attributes_of(argument: Argument) -> list[list[Any]]:
    """What Triton specialises on: alignment, of pointers and of numbers."""
    if isinstance(argument, Buffer):
        return [["tt.divisibility", 16]]
    if isinstance(argument.value, int) and argument.value % 16 == 0:
        return [["tt.divisibility", 16]]
    return []
