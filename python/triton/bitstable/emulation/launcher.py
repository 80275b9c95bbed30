"""One kernel, loaded, and its launches: what Triton calls a launcher class and a binary.

# Idea
Triton hands a launcher the grid, the hooks and the arguments as its signature lists them. They
become a parameter block, as the PTX declares it, over a [`Memory`]; the native library runs the
block; what it found becomes reports, and errors among them an exception once the launch is over.

# Invariants
- **L1** A launch that cannot be run as a GPU would run it is refused before anything runs, with the
  argument or option that is in the way.
- **L2** The caller's arrays change only after a run has ended by itself: an interrupted one leaves
  them as they were. A run with errors is written back, as a GPU would have done.
- **L3** How to run is asked of the innermost emulation at each launch: a compiled kernel outlives
  the emulation it was compiled in.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from triton._instrumentation import is_enabled
from triton.bitstable import _native
from triton.bitstable.emulation import session
from triton.bitstable.emulation.arguments import adapt
from triton.bitstable.emulation.devices import WARP_SIZE
from triton.bitstable.emulation.memory import Memory, Pointer, Scratch
from triton.bitstable.emulation.reports import Report
from triton.bitstable.errors import EmulationError
from triton.runtime.cache import get_cache_manager

T = TypeVar("T")
MAX_GRID = (2**31 - 1, 65535, 65535)
_FORMATS = {
    **{"u1": "?", "i1": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H"},
    **{"i32": "i", "u32": "I", "i64": "q", "u64": "Q"},
    **{"fp16": "e", "fp64": "d"},
}
_SCRATCH = ("global scratch memory", "profile scratch memory")


@dataclass(frozen=True)
class LoadedKernel:
    """What stands for module and function. `ptx` is missing where there is machine code instead."""

    name: str
    ptx: str | None


class Program:
    """A kernel's PTX, parsed by the native library; freed with the object."""

    def __init__(self, name: str, ptx: str) -> None:
        self.name = name
        library = _native.library()
        loaded = library.ptx_load(ptx.encode(), {"entry": name})
        self.handle: int = loaded["handle"]
        self.params: list[dict[str, Any]] = loaded["params"]
        self.block_bytes: int = loaded["param_bytes"]
        self._finalizer = weakref.finalize(self, library.ptx_unload, self.handle)


@dataclass(frozen=True)
class Argument:
    """A leaf of the argument list, with its type by Triton's short name."""

    name: str
    type: str
    value: Any


def flatten(signature: Any, values: Any, name: str) -> Iterator[Argument]:
    """The leaves that are passed at run time: tuples opened, constants left out."""
    if isinstance(signature, tuple):
        for at, (inner, value) in enumerate(zip(signature, values, strict=True)):
            yield from flatten(inner, value, f"{name}[{at}]")
    elif signature != "constexpr":
        yield Argument(name, signature, values)


class Launcher:
    """Launches one compiled kernel; Triton makes one for each."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self.metadata = metadata
        self.file_stem = src.name[:150]
        self.signature = {str(name): kind for name, kind in src.signature.items()}
        self._program: Program | None = None
        self._lock = threading.Lock()
        self._refuse_unsupported()

    def _refuse_unsupported(self) -> None:
        metadata, name = self.metadata, self.metadata.name
        if metadata.num_ctas != 1:
            raise EmulationError(
                f"kernel {name}: num_ctas={metadata.num_ctas}: clusters of CTAs are not emulated; "
                "launch it with num_ctas=1"
            )
        if getattr(metadata, "launch_cooperative_grid", False):
            raise EmulationError(
                f"kernel {name}: launch_cooperative_grid=True: grid-wide barriers are not "
                "emulated; split the kernel where the grid meets"
            )
        if is_enabled(metadata, "gsan"):
            raise EmulationError(
                f"kernel {name}: instrumentation_mode 'gsan' is not emulated; turn it off: races "
                "are looked for anyway"
            )
        for argument, kind in self.signature.items():
            if any("tensordesc" in leaf for leaf in _leaves(kind)):
                raise EmulationError(
                    f"kernel {name}: argument {argument}: tensor descriptors made on the host are "
                    "not emulated; pass the tensor with its shape and strides, and use pointers "
                    "or tl.make_tensor_descriptor in the kernel"
                )

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: Any,
        function: LoadedKernel,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Callable[[Any], Any] | None,
        exit_hook: Callable[[Any], Any] | None,
        *values: Any,
    ) -> None:
        """Run one launch to its end; signature and order are Triton's."""
        grid = self._grid(grid_x, grid_y, grid_z)
        if enter_hook is not None:
            enter_hook(launch_metadata)
        reports = self._launch(grid, function, values) if 0 not in grid else []
        if exit_hook is not None:
            exit_hook(launch_metadata)
        errors = [report for report in reports if report.is_error]
        if errors:
            head = f"kernel {self.metadata.name}: {len(errors)} error{'s' * (len(errors) > 1)}"
            raise EmulationError("\n".join([head, *(e.render() for e in errors)]), reports)

    def _grid(self, *grid: Any) -> tuple[int, ...]:
        sizes = tuple(int(extent) for extent in grid)
        for axis, extent, most in zip("xyz", sizes, MAX_GRID, strict=True):
            if not 0 <= extent <= most:
                raise EmulationError(
                    f"kernel {self.metadata.name}: grid axis {axis} is {extent}; a device takes 0 "
                    f"to {most}"
                )
        return sizes

    def _launch(self, grid: tuple[int, ...], function: LoadedKernel, values: Any) -> list[Report]:
        emulation = session.innermost()
        if emulation is None:
            raise EmulationError(
                f"kernel {self.metadata.name} was loaded for an emulated device: launch it inside "
                "triton.bitstable.emulate"
            )
        program = self._load(function)
        arguments = list(self._arguments(values))
        pointers = {a.name: Pointer.of(a.value, a.name, a.type) for a in arguments if _points(a)}
        memory = Memory(pointers.values(), self._scratch(grid))
        block = self._parameters(program, arguments, pointers, memory)
        reports: list[Report] = []
        outcome: list[bytes] | None = None
        for order in emulation.options.orders():
            if outcome is not None:
                memory.restore()
            reply = self._run(program, grid, block, memory, emulation.request(order))
            emulation.record(reply)
            found = reply["findings"]
            name = self.metadata.name
            reports += [Report.from_json(entry, name, memory, order) for entry in found]
            if left_out := reply.get("left_out"):
                reports.append(_left_out(name, left_out, reply["errors_left_out"], order))
            if outcome is None:
                outcome = memory.outcome()
                memory.write_back()
            elif at := memory.first_difference(outcome):
                reports.append(self._disagreement(at, order, emulation.options.schedule))
        emulation.collection.add(reports)
        return reports

    def _load(self, function: LoadedKernel) -> Program:
        with self._lock:
            if self._program is None:
                self._program = Program(function.name, function.ptx or self._cached_ptx())
            return self._program

    def _cached_ptx(self) -> str:
        """The PTX beside a kernel whose last stage is machine code."""
        path = get_cache_manager(self.metadata.hash).get_file(f"{self.file_stem}.ptx")
        if path is None:
            raise EmulationError(
                f"kernel {self.metadata.name}: its PTX is not in Triton's cache; compile it inside "
                "triton.bitstable.emulate, or without TRITON_STORE_BINARY_ONLY"
            )
        with open(path) as stream:
            return stream.read()

    def _arguments(self, values: Any) -> Iterator[Argument]:
        # A compiled kernel may also be launched without Triton's front, which dresses arguments.
        values = adapt(values, self.signature)
        for (name, kind), value in zip(self.signature.items(), values, strict=True):
            yield from flatten(kind, value, name)

    def _scratch(self, grid: tuple[int, ...]) -> list[Scratch]:
        ctas = grid[0] * grid[1] * grid[2]
        metadata = self.metadata
        wanted = (
            (metadata.global_scratch_size, metadata.global_scratch_align),
            (metadata.profile_scratch_size, metadata.profile_scratch_align),
        )
        return [
            Scratch(name, size * ctas, align)
            for name, (size, align) in zip(_SCRATCH, wanted, strict=True)
            if size
        ]

    def _parameters(
        self,
        program: Program,
        arguments: list[Argument],
        pointers: dict[str, Pointer],
        memory: Memory,
    ) -> bytes:
        """The parameter block: the arguments, then the two scratch pointers."""
        packed = [_packed(a, memory, pointers.get(a.name)) for a in arguments]
        for name in _SCRATCH:
            buffer = memory.scratch.get(name)
            packed.append(struct.pack("<Q", buffer.address if buffer else 0))
        sizes, declared = [len(value) for value in packed], [p["bytes"] for p in program.params]
        if sizes != declared:
            raise EmulationError(
                f"kernel {self.metadata.name}: its PTX declares parameters of {declared} bytes, "
                f"the launch passes {sizes}"
            )
        block = bytearray(program.block_bytes)
        for param, value in zip(program.params, packed, strict=True):
            block[param["offset"] : param["offset"] + len(value)] = value
        return bytes(block)

    def _run(
        self,
        program: Program,
        grid: tuple[int, ...],
        block: bytes,
        memory: Memory,
        options: dict[str, Any],
    ) -> dict[str, Any]:
        library, cancel = _native.library(), ctypes.c_uint8(0)

        def work() -> dict[str, Any]:  # owns all that the run reads, even if nobody waits for it
            request = {
                "grid": grid,
                "block": [self.metadata.num_warps * WARP_SIZE, 1, 1],
                "dynamic_shared": self.metadata.shared,
                "buffers": memory.request(),
                "options": options,
            }
            return library.ptx_launch(program.handle, request, block, cancel)

        reply = _interruptible(work, cancel)
        for line in reply["printed"]:
            sys.stdout.write(line)
        return reply

    def _disagreement(self, at: str, order: str, first: str) -> Report:
        return Report(
            kernel=self.metadata.name,
            severity="error",
            kind="schedules-disagree",
            message=f"the result depends on the schedule: {at} differs from schedule={first}",
            schedule=order,
        )


def _left_out(kernel: str, count: int, errors: int, order: str) -> Report:
    return Report(
        kernel=kernel,
        severity="error" if errors else "note",
        kind="more",
        message=f"{count} more findings are not listed",
        schedule=order,
    )


def _leaves(signature: Any) -> Iterator[str]:
    if isinstance(signature, tuple):
        for inner in signature:
            yield from _leaves(inner)
    else:
        yield signature


def _points(argument: Argument) -> bool:
    return argument.type.startswith("*")


def _packed(argument: Argument, memory: Memory, pointer: Pointer | None) -> bytes:
    if pointer is not None:
        return struct.pack("<Q", memory.device_address(pointer))
    try:
        if argument.type in ("fp32", "f32"):  # too large is infinite, where `struct` refuses
            return bytes(ctypes.c_float(argument.value))
        if argument.type == "bf16":  # cut off, as Triton's own launcher does
            return bytes(ctypes.c_float(argument.value))[2:]
        return struct.pack("<" + _FORMATS[argument.type], argument.value)
    except (struct.error, OverflowError, KeyError, TypeError) as error:
        raise EmulationError(
            f"argument {argument.name}: {argument.value!r} cannot be passed as {argument.type}: "
            f"{error}"
        ) from None


def _interruptible(work: Callable[[], T], cancel: ctypes.c_uint8) -> T:
    """Run `work` so that Ctrl-C is seen: on another thread, if this is the one that sees it."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    result: list[T] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, name="bitstable-launch", daemon=True)
    try:
        thread.start()
        while not done.wait(0.1):  # a signal that another thread took is seen between waits
            pass
    except BaseException:
        cancel.value = 1
        done.wait(1)  # it ends promptly
        raise
    if failure:
        raise failure[0]
    return result[0]
