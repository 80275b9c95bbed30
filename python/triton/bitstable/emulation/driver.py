"""The emulated driver: what Triton asks of a device, answered without one.

# Idea
Compilation is Triton's own, for the emulated target, but for the last stage: `ptxas` is not run,
and the "binary" that is loaded is the PTX itself ([`skip_machine_code`]). That saves a quarter to
a half of a compilation.

# Invariants
- **D1** Nothing here is mixed up with a GPU of the same architecture: the device's number, which
  keys Triton's caches in the process, is a name no GPU has, and the key of the cache on disk
  differs where the result does.
- **D2** Costs are constant. A time measured here means nothing, so autotuning takes the first
  configuration, always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia.driver import ty_to_cpp
from triton.bitstable.emulation import session
from triton.bitstable.emulation.arguments import Array
from triton.bitstable.emulation.devices import MAX_THREADS, Device
from triton.bitstable.emulation.launcher import Launcher, LoadedKernel
from triton.bitstable.errors import EmulationError
from triton.runtime import driver as registry

STREAM = 0
COST_MS = 1.0
# No register allocation has taken place; kernels that plan their occupancy need some number.
_REGISTERS = 32
_PIPELINE_KEY = "bitstable-emulated"


class Utilities:
    """What Triton calls `driver.active.utils`."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def load_binary(self, name: str, kernel: bytes, shared: int, device: Any) -> tuple[Any, ...]:
        """Module, function, registers, spills, most threads."""
        loaded = LoadedKernel(name, None if kernel.startswith(b"\x7fELF") else kernel.decode())
        return loaded, loaded, _REGISTERS, 0, MAX_THREADS

    def unload_module(self, module: Any) -> None:
        """Nothing: a loaded kernel is freed with its launcher."""

    def get_device_properties(self, device: Any = None) -> dict[str, int]:
        """Of the emulated device, whichever number is asked for."""
        return self._device.properties()

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """Major and minor."""
        return self._device.capability

    def get_current_device(self) -> str:
        """Its name stands for its number."""
        return self._device.name

    def set_current_device(self, device: Any) -> None:
        """Nothing: there is one device."""

    def get_default_stream(self, device: Any = None) -> int:
        """The only one."""
        return STREAM

    def is_stream_capturing(self, stream: Any = None) -> bool:
        """Never."""
        return False

    def set_printf_fifo_size(self, size: int) -> None:
        """Nothing: no output is dropped."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise EmulationError(f"driver.active.utils.{name} is not emulated")


class Event:
    """A point in time of a device that has no time."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def record(self, *_: Any) -> None:
        """Nothing."""

    def synchronize(self) -> None:
        """Nothing."""

    def elapsed_time(self, other: Event) -> float:
        """So long that `do_bench` runs everything once."""
        return 1000 * COST_MS


class DeviceInterface:
    """What Triton's benchmarks take from `torch.cuda`."""

    Event = Event

    def __init__(self, device: Device) -> None:
        self._device = device

    def synchronize(self, device: Any = None) -> None:
        """Nothing: launches end before they return."""

    def current_device(self) -> str:
        """See `Utilities.get_current_device`."""
        return self._device.name

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """Major and minor."""
        return self._device.capability

    def is_available(self) -> bool:
        """Yes."""
        return True


class EmulatedDriver(DriverBase):
    """One emulated device."""

    launcher_cls = Launcher

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self.utils = Utilities(device)

    @staticmethod
    def is_active() -> bool:
        """Whether an emulation is."""
        return session.innermost() is not None

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for."""
        return self.device.target

    def get_current_device(self) -> str:
        """See `Utilities.get_current_device`."""
        return self.device.name

    def set_current_device(self, device: Any) -> None:
        """Nothing: there is one device."""

    def get_current_stream(self, device: Any = None) -> int:
        """The only one."""
        return STREAM

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """Major and minor."""
        return self.device.capability

    def get_device_interface(self) -> DeviceInterface:
        """What benchmarks take from `torch.cuda`."""
        return DeviceInterface(self.device)

    def get_active_torch_device(self) -> Any:
        """Tensors live in the CPU's memory."""
        import torch

        return torch.device("cpu")

    def map_python_to_cpp_type(self, ty: str) -> str:
        """As for a GPU."""
        return ty_to_cpp(ty)

    def get_benchmarker(self) -> Callable[..., Any]:
        """One that runs a kernel once and finds every kernel equally fast."""
        return benchmark

    def get_empty_cache_for_benchmark(self) -> Array:
        """Something to clear."""
        return Array(np.zeros(1, np.int32))

    def clear_cache(self, cache: Any) -> None:
        """Nothing: there is no cache to warm."""

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: Any) -> Array:
        """The launcher has scratch memory of its own; this one is for callers of Triton's API."""
        return Array(np.zeros(size, np.int8))

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        """As for a GPU."""
        return args


def benchmark(kernel_call: Callable[[], Any], *, quantiles: Any = None, **options: Any) -> Any:
    """Run once and report the constant cost.

    An autotuner keeps the benchmarker it first got; on a GPU, afterwards, it must measure.
    """
    active = registry.active
    if not isinstance(active, EmulatedDriver):
        return active.get_benchmarker()(kernel_call, quantiles=quantiles, **options)
    kernel_call()
    return [COST_MS] * len(quantiles) if quantiles is not None else COST_MS


def skip_machine_code(outer: Callable[..., Any] | None) -> Callable[..., Any]:
    """The stage hook of an emulation, around the user's own."""

    def hook(
        backend: Any = None,
        stages: Any = None,
        options: Any = None,
        language: Any = None,
        capability: Any = None,
    ) -> tuple[str, str] | None:
        skip = not knobs.compilation.dump_ir  # which disassembles the machine code
        if stages is None:
            key, digest = outer() if outer else ("", "")
            ours = _PIPELINE_KEY if skip else ""
            return f"{key}{ours}", repr(f"{digest}{ours}")
        if outer is not None:
            outer(backend, stages, options, language, capability)
        if skip and "cubin" in stages:
            stages["cubin"] = _ptx_as_binary
        return None

    return hook


def _ptx_as_binary(ptx: Any, metadata: Any) -> bytes:
    return str(ptx).encode()
