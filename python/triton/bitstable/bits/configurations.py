"""Configurations: what is varied about a kernel that must not move its bits.

# Idea
A configuration is a point on a few axes: the target, Triton's options, whether pointers are aligned
to 16 bytes, and constants of the kernel. [`matrix`] makes all combinations; a list of
`triton.Config`, as an autotuner has it, is crossed with the axes that it does not have.

# Invariants
- **C1** Two configurations are equal when every axis is; none stands in a sweep twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import triton
from triton.bitstable.bits.errors import UsageError

TARGETS = ("cuda:80", "cuda:90", "cuda:100")
WARPS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Configuration:
    """One way to compile and launch a kernel."""

    target: str = "cuda:90"
    num_warps: int = 4
    num_stages: int = 3
    fp_fusion: bool = True
    aligned: bool = True
    #: The kernel's own constants, by name.
    constants: tuple[tuple[str, Any], ...] = ()
    #: Options of Triton that only some sweeps set, such as `maxnreg`.
    options: tuple[tuple[str, Any], ...] = field(default=())

    def keywords(self) -> dict[str, Any]:
        """What the kernel is called with, besides its arguments."""
        return {
            **dict(self.constants),
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
            "enable_fp_fusion": self.fp_fusion,
            **dict(self.options),
        }

    def axes(self) -> dict[str, Any]:
        """Every axis by its name, values as JSON has them: how it is listed and asked for."""
        shown = {
            "target": self.target,
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
            "fp_fusion": self.fp_fusion,
            "aligned": self.aligned,
        }
        for name, value in (*self.options, *self.constants):
            plain = value is None or isinstance(value, (bool, int, float, str))
            shown[name] = value if plain else str(value)
        return shown

    def __str__(self) -> str:
        return " ".join(f"{name}={show(value)}" for name, value in self.axes().items())


def show(value: Any) -> str:
    """A value of an axis, as it is written on the command line."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


def matrix(
    *,
    targets: Iterable[str] = TARGETS,
    num_warps: Iterable[int] = WARPS,
    num_stages: Iterable[int] = (3,),
    fp_fusion: Iterable[bool] = (True, False),
    aligned: Iterable[bool] = (True,),
    constants: Mapping[str, Any] | None = None,
    configs: Iterable[triton.Config] | None = None,
) -> list[Configuration]:
    """All combinations. In `constants` a list (or tuple) is an axis, anything else one value.

    `configs`, an autotuner's list, takes the place of `num_warps` and `num_stages`; its constants
    win over those of the same name.
    """
    axes = {name: _several(value) for name, value in (constants or {}).items()}
    if configs is None:
        configs = [
            triton.Config({}, warps, stages)
            for warps, stages in itertools.product(num_warps, num_stages)
        ]
    made = [
        _configuration(target, config, fusion, pointers, dict(zip(axes, values, strict=True)))
        for target, config, fusion, pointers, values in itertools.product(
            targets, configs, fp_fusion, aligned, list(itertools.product(*axes.values()))
        )
    ]
    return list(dict.fromkeys(made))


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _configuration(
    target: str, config: triton.Config, fusion: bool, aligned: bool, constants: dict[str, Any]
) -> Configuration:
    for name in ("pre_hook", "ir_override"):
        if getattr(config, name) is not None:
            raise UsageError(
                f"triton.Config with {name}: every launch starts from fresh buffers, "
                f"compiled from the kernel's own source; leave {name} out"
            )
    options: dict[str, Any] = {"num_ctas": config.num_ctas} if config.num_ctas != 1 else {}
    if config.maxnreg is not None:
        options["maxnreg"] = config.maxnreg
    return Configuration(
        target,
        config.num_warps,
        config.num_stages,
        fusion,
        aligned,
        tuple({**constants, **config.kwargs}.items()),
        tuple(options.items()),
    )


def collect(configs: Iterable[Configuration | triton.Config]) -> list[Configuration]:
    """What `sweep` is given; a `triton.Config` is crossed with the targets and fusion."""
    found: list[Configuration] = []
    for each in configs:
        found += [each] if isinstance(each, Configuration) else matrix(configs=[each])
    if not found:
        raise UsageError("no configurations to sweep")
    return list(dict.fromkeys(found))
