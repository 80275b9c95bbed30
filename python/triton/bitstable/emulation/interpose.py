"""What is replaced in Triton while an emulation is active, and how it comes back.

| what | why |
|---|---|
| the active driver | the device |
| `KernelInterface.__getitem__`, `JITFunction.run` | numpy arguments must be dressed before Triton |
|   | specialises on them, and before an autotuner's hooks see them |
| `Autotuner.check_disk_cache` | constant costs must not reach the disk: a GPU would find them |
| the stage hook | `ptxas` is skipped; a hook of the user's still runs |
| `CompiledKernel.__del__` | kernels outlive emulations, and would be unloaded by a GPU's driver |

# Invariants
- **I1** Replacements do nothing of their own unless the active driver is an emulated one.
- **I2** What somebody else has put over a replacement meanwhile is left alone.
- **I3** `CompiledKernel.__del__` stays replaced after the first emulation, and differs for kernels
  that an emulated driver loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triton import knobs
from triton.bitstable.emulation.arguments import adapt
from triton.bitstable.emulation.driver import EmulatedDriver, skip_machine_code
from triton.bitstable.emulation.launcher import LoadedKernel
from triton.compiler.compiler import CompiledKernel
from triton.runtime import driver as registry
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction, KernelInterface


@dataclass
class Replaced:
    """The originals."""

    driver: Any
    methods: list[tuple[type, str, Any, Any]]
    hook: Any
    own_hook: Any

    @classmethod
    def begin(cls) -> Replaced:
        """Replace everything but the driver, and remember it."""
        _outlive_emulations()
        methods = []
        for owner, name, wrap in (
            (KernelInterface, "__getitem__", _getitem),
            (JITFunction, "run", _run),
            (Autotuner, "check_disk_cache", _check_disk_cache),
        ):
            original = owner.__dict__[name]
            replacement = wrap(original)
            setattr(owner, name, replacement)
            methods.append((owner, name, original, replacement))
        hook = knobs.runtime.add_stages_inspection_hook
        own = skip_machine_code(hook)
        knobs.runtime.add_stages_inspection_hook = own
        return cls(registry._active, methods, hook, own)

    def activate(self, driver: EmulatedDriver) -> None:
        """Make `driver` Triton's."""
        registry.set_active(driver)

    def end(self) -> None:
        """Put everything back."""
        registry.set_active(self.driver)  # none yet, perhaps: then Triton looks when it needs one
        for owner, name, original, replacement in self.methods:
            if owner.__dict__[name] is replacement:
                setattr(owner, name, original)
        if knobs.runtime.add_stages_inspection_hook is self.own_hook:
            knobs.runtime.add_stages_inspection_hook = self.hook


@functools.cache
def _outlive_emulations() -> None:
    original = CompiledKernel.__del__

    def __del__(self: Any) -> None:
        if isinstance(getattr(self, "module", None), LoadedKernel):
            self.module = None
        original(self)

    CompiledKernel.__del__ = __del__


def _emulating() -> bool:
    return isinstance(registry._active, EmulatedDriver) and not knobs.runtime.interpret


def _dressed(kernel: Any, values: Any, options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    known = list(getattr(kernel, "arg_names", ()))[: len(values)]
    names = known + [f"number {at}" for at in range(len(known), len(values))]
    positional = adapt(values, names)
    return positional, dict(zip(options, adapt(options.values(), options), strict=True))


def _getitem(original: Callable[..., Any]) -> Callable[..., Any]:
    def __getitem__(self: Any, grid: Any) -> Callable[..., Any]:
        launch = original(self, grid)

        def dressed(*args: Any, **kwargs: Any) -> Any:
            if not _emulating():
                return launch(*args, **kwargs)
            values, options = _dressed(self, args, kwargs)
            return launch(*values, **options)

        return dressed

    return __getitem__


def _run(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not _emulating():
            return original(self, *args, grid=grid, warmup=warmup, **kwargs)
        values, options = _dressed(self, args, kwargs)
        return original(self, *values, grid=grid, warmup=warmup, **options)

    return run


def _check_disk_cache(original: Callable[..., Any]) -> Callable[..., Any]:
    def check_disk_cache(self: Any, tuning_key: Any, configs: Any, bench_fn: Any) -> bool:
        if not _emulating():
            return original(self, tuning_key, configs, bench_fn)
        bench_fn()
        return False

    return check_disk_cache
