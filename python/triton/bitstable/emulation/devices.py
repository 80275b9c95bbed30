"""The devices that can be emulated: what a program may ask about each.

Shared memory is the most that one block may ask for, from the table of compute capabilities in the
CUDA C++ Programming Guide. The number of multiprocessors is that of the product named beside it;
persistent kernels take their grid from it, and nothing else depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from triton.backends.compiler import GPUTarget

WARP_SIZE = 32
MAX_THREADS = 1024


@dataclass(frozen=True)
class Device:
    """One compute capability, on one product that has it."""

    arch: int
    product: str
    multiprocessors: int
    shared_kib: int

    @property
    def name(self) -> str:
        """As the user writes it. It also stands for the device's number; see `EmulatedDriver`."""
        return f"cuda:{self.arch}"

    @property
    def target(self) -> GPUTarget:
        """What kernels are compiled for."""
        return GPUTarget("cuda", self.arch, WARP_SIZE)

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor."""
        return divmod(self.arch, 10)

    def properties(self) -> dict[str, int]:
        """What `get_device_properties` returns; clocks, in kHz, and bus width are round numbers."""
        return {
            "max_shared_mem": self.shared_kib * 1024,
            "max_num_regs": 65536,
            "multiprocessor_count": self.multiprocessors,
            "warpSize": WARP_SIZE,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 1024,
        }


DEVICES = {
    device.arch: device
    for device in (
        Device(80, "A100", 108, 163),
        Device(86, "GeForce RTX 3090", 82, 99),
        Device(87, "Jetson AGX Orin", 16, 163),
        Device(89, "L40S", 142, 99),
        Device(90, "H100", 132, 227),
        Device(100, "B200", 148, 227),
        Device(103, "B300", 148, 227),
        Device(120, "GeForce RTX 5090", 170, 99),
    )
}
