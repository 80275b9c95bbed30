"""Torch tensors on the CPU as arguments. Skipped, with a word, where torch is not installed."""

import pytest
import triton
import triton.language as tl
from triton.bitstable import EmulationError, emulate

torch = pytest.importorskip("torch", reason="torch is not installed: its tensors are not tested")


@triton.jit
def axpy(x, y, out, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) * a + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32])
def test_tensors(dtype):
    x = torch.arange(300).remainder(50).to(dtype)
    y, out = torch.ones_like(x), torch.zeros_like(x)
    with emulate("cuda:90") as e:
        axpy[(3,)](x, y, out, 2, 300, BLOCK=128)
    assert torch.equal(out, 2 * x + y) and e.reports == []


def test_views_reach_their_storage():
    base = torch.arange(100, dtype=torch.float32)
    out = torch.zeros(50)
    with emulate("cuda:90"):
        axpy[(1,)](base[50:], base[:50], out, 1.0, 50, BLOCK=64)
    assert torch.equal(out, base[50:] + base[:50])


def test_an_access_out_of_bounds_names_the_argument():
    x, out = torch.zeros(100), torch.zeros(128)
    with emulate("cuda:90"), pytest.raises(EmulationError, match="element 100 of x, which has 100"):
        axpy[(1,)](x, out, out, 1.0, 128, BLOCK=128)


def test_the_device_is_the_cpu_and_other_devices_are_refused():
    with emulate("cuda:90"):
        assert triton.runtime.driver.active.get_active_torch_device() == torch.device("cpu")
        elsewhere = torch.zeros(128, device="meta")
        with pytest.raises(EmulationError, match="argument x: the tensor is on meta"):
            axpy[(1,)](elsewhere, elsewhere, elsewhere, 1.0, 128, BLOCK=128)


def test_reset_and_restore_of_autotuning():
    configs = [triton.Config({"BLOCK": b}) for b in (64, 128)]
    tuned = triton.autotune(configs, key=["n"], restore_value=["y"], reset_to_zero=["out"])(axpy)
    x, y, out = torch.ones(128), torch.ones(128), torch.ones(128)
    with emulate("cuda:90"):
        tuned[lambda meta: (128 // meta["BLOCK"],)](x, y, out, 2.0, 128)
    assert torch.equal(out, torch.full((128,), 3.0))
