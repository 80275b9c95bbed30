"""Arguments of emulated launches, and the memory that is made of them."""

import copy
import ctypes
import itertools
from collections import namedtuple

import numpy as np
import pytest
import triton.language as tl
from triton._utils import canonicalize_ptr_dtype
from triton.bitstable.emulation.arguments import Array, adapt, element_bytes, view
from triton.bitstable.emulation.memory import CONGRUENT, GUARD, Memory, Pointer, Scratch
from triton.bitstable.errors import EmulationError


def pointer(value, name="x", kind="*fp32"):
    (value,) = adapt([value], [name])
    return Pointer.of(value, name, kind)


def memory(*arrays, scratch=()):
    names = "xyzuvw"
    return Memory([pointer(array, names[at]) for at, array in enumerate(arrays)], scratch)


def device_bytes(address, size):
    return ctypes.string_at(address, size)


def test_arrays_are_dressed_and_the_rest_is_left():
    x = np.zeros((3, 4), np.float32)
    Pair = namedtuple("Pair", "left right")
    given = [x, 5, 2.5, None, "text", (x, (1, x)), Pair(x, 2), (1, 2)]
    got = adapt(given, "abcdefgh")
    assert isinstance(got[0], Array) and got[0].array is x
    assert got[0].data_ptr() == x.ctypes.data
    assert got[1:5] == given[1:5]
    assert isinstance(got[5][0], Array) and isinstance(got[5][1][1], Array)
    assert isinstance(got[6], Pair) and isinstance(got[6].left, Array)
    assert got[7] is given[7]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int32(7), 7),
        (np.uint64(2**63), 2**63),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float64(0.1), 0.1),
        (np.bool_(True), True),
    ],
)
def test_numpy_scalars_are_pythons(value, expected):
    (got,) = adapt([value], ["n"])
    assert got == expected and type(got) is type(expected)


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[s]", ">f4", "S3", "O", [("a", "f4")]])
def test_element_types_that_no_kernel_has_are_refused_by_name(dtype):
    with pytest.raises(EmulationError, match="argument weights: an array of"):
        adapt([np.zeros(3, dtype)], ["weights"])


def test_an_array_inside_a_tuple_is_named_by_its_place():
    with pytest.raises(EmulationError, match=r"argument pair\[1\]\[0\]"):
        adapt([(1, (np.zeros(3, complex),))], ["pair"])


@pytest.mark.parametrize("name", ["f2", "f4", "f8", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4"])
def test_triton_knows_the_types(name):
    dtype = np.dtype(name)
    short = canonicalize_ptr_dtype(Array(np.zeros(1, dtype)).dtype, False)
    assert element_bytes(short.removeprefix("*")) == dtype.itemsize


@pytest.mark.parametrize(
    ("dtype", "storage", "short"),
    [
        ("bf16", np.uint16, "*bf16"),
        (tl.bfloat16, np.int16, "*bf16"),
        ("fp8e5", np.uint8, "*fp8e5"),
        (tl.float8e4nv, np.uint8, "*fp8e4nv"),
        ("float32", np.int32, "*fp32"),
        ("u1", np.uint8, "*u1"),
    ],
)
def test_view_gives_bits_a_type(dtype, storage, short):
    bits = np.zeros(4, storage)
    seen = view(bits, dtype)
    assert canonicalize_ptr_dtype(seen.dtype, False) == short
    assert seen.data_ptr() == bits.ctypes.data


def test_view_refuses_what_does_not_fit():
    with pytest.raises(EmulationError, match="bf16 takes 2 bytes an element, the array has 4"):
        view(np.zeros(4, np.float32), "bf16")
    with pytest.raises(EmulationError, match="no such element type: 'bf17'; the choices are bf16"):
        view(np.zeros(4, np.uint16), "bf17")
    with pytest.raises(EmulationError, match="a numpy array is needed, not list"):
        view([1, 2], "bf16")


def test_a_dressed_array_does_what_autotuning_and_hooks_ask():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    dressed = Array(x)
    assert dressed.shape == (2, 3) and len(dressed) == 2 and dressed[1, 2] == 5
    assert dressed.stride() == (3, 1) and dressed.stride(0) == 3
    assert (dressed.numel(), dressed.element_size()) == (6, 4)
    kept = dressed.clone()
    dressed[0, 0] = 9
    dressed.zero_()
    assert not x.any() and kept[1, 2] == 5
    dressed.copy_(kept)
    assert np.array_equal(np.asarray(dressed), np.arange(6).reshape(2, 3))
    assert copy.copy(dressed).array is x


def test_copies_are_congruent_and_far_apart():
    base = np.zeros(4096, np.uint8)
    parts = [base[at : at + 64].copy()[off:] for at, off in ((0, 0), (64, 4), (128, 60))]
    made = memory(*parts, scratch=[Scratch("scratch", 100, 256)])
    places = sorted((b.address, b.address + b.copy.size) for b in made.all())
    for (_, end), (start, _) in itertools.pairwise(places):
        assert start - end >= GUARD
    for p in made.pointers:
        assert (made.device_address(p) - p.address) % CONGRUENT == 0
    assert made.scratch["scratch"].address % 256 == 0
    assert device_bytes(made.scratch["scratch"].address, 100) == bytes(100)


def test_a_view_reaches_its_owner_s_memory_and_no_further():
    owner = np.arange(100, dtype=np.float32)
    part = owner[90:10:-2]
    made = memory(part)
    (buffer,) = made.buffers
    assert buffer.copy.size == 400
    address = made.device_address(made.pointers[0])
    assert device_bytes(address, 4) == np.float32(90).tobytes()
    assert address - buffer.address == 360


def test_arguments_that_share_memory_share_a_buffer():
    owner = np.zeros(100, np.float32)
    made = memory(owner, owner[50:], np.zeros(3, np.float32))
    assert sorted(b.names for b in made.buffers) == [["x", "y"], ["z"]]
    x, y, _ = (made.device_address(p) for p in made.pointers)
    assert y - x == 200


def test_only_changed_bytes_are_written_back():
    x = np.zeros(8, np.int32)
    made = memory(x)
    made.buffers[0].copy.view(np.int32)[3] = 7
    x[5] = 1  # by somebody else, meanwhile
    made.write_back()
    assert x.tolist() == [0, 0, 0, 7, 0, 1, 0, 0]


def test_read_only_arrays_are_not_written():
    x = np.zeros(8, np.int32)
    x.flags.writeable = False
    made = memory(x)
    assert not made.buffers[0].span.writable
    made.buffers[0].copy[...] = 1
    made.write_back()
    assert not x.any()
    # A writable name for the same memory makes it writable.
    owner = np.zeros(8, np.int32)
    constant = owner[:]
    constant.flags.writeable = False
    assert memory(constant, owner).buffers[0].span.writable


def test_restoring_makes_the_copies_what_the_originals_are():
    x = np.arange(8, dtype=np.int32)
    made = memory(x)
    before = made.outcome()
    made.buffers[0].copy[...] = 9
    assert made.first_difference(before) == "element 0 of x, which has 8 of fp32"
    made.restore()
    assert made.outcome() == before and made.first_difference(before) is None


def test_addresses_are_described_by_argument_and_element():
    x, y = np.zeros(1000, np.float32), np.zeros(10, np.float32)
    made = memory(x, y[4:], scratch=[Scratch("global scratch memory", 64, 16)])
    at = made.device_address(made.pointers[0])
    assert made.describe(at + 4) == "element 1 of x, which has 1000 of fp32"
    assert made.describe(at + 4000) == "element 1000 of x, which has 1000 of fp32"
    assert made.describe(at - 1) == "element -1 of x, which has 1000 of fp32"
    at = made.device_address(made.pointers[1])
    assert made.describe(at + 24) == "element 6 of y, which has 6 of fp32"
    scratch = made.scratch["global scratch memory"].address
    assert made.describe(scratch + 70) == "byte 70 of global scratch memory, which has 64"
    assert made.describe(64) is None


def test_an_empty_array_is_a_pointer_to_nothing():
    made = memory(np.zeros(0, np.float32))
    assert made.buffers == []
    assert made.device_address(made.pointers[0]) == made.pointers[0].address


def test_memory_without_bounds_is_refused_by_name():
    class Bare:
        def data_ptr(self):
            return 4096

    with pytest.raises(EmulationError, match="argument x: the bounds of a Bare are not known"):
        pointer(Bare())
    with pytest.raises(EmulationError, match="argument x: a pointer is needed, got int"):
        pointer(4096)


def test_something_that_says_its_size_will_do():
    data = ctypes.create_string_buffer(16)

    class Sized:
        nbytes = 16

        def data_ptr(self):
            return ctypes.addressof(data)

    assert pointer(Sized()).span.bytes == 16


def test_tensors_elsewhere_are_refused():
    class Place:
        type = "cuda"

        def __str__(self):
            return "cuda:0"

    class Tensor:
        device = Place()

        def data_ptr(self):
            return 4096

        untyped_storage = None

    with pytest.raises(EmulationError, match=r"argument x: the tensor is on cuda:0.*tensor\.cpu"):
        pointer(Tensor())
