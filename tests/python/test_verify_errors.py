"""A kernel without a certificate does not compile, and says where: PTX that is changed on the way.

The PTX is changed between Triton's code generation and the check, as a fault of LLVM would.
"""

import pickle
import re

import pytest
from triton import knobs
from triton.backends.nvidia.compiler import CUDABackend
from triton.bitstable import CertificateError
from triton.bitstable.errors import ReductionOrderError

import kernels
from compiling import SM90, compile

TILE = {"M": 16, "N": 64, "AXIS": 1, "ORDER": "inner_tree"}


@pytest.fixture
def changed(monkeypatch):
    """Compiles a kernel whose PTX a function changes; the error that this ends in."""
    make_ptx = CUDABackend.make_ptx
    # A kernel that was compiled before has its certificate already.
    monkeypatch.setattr(knobs.compilation, "always_compile", True)

    def compile_changed(change, kernel=kernels.sum_tile, **constants):
        def made(self, *arguments):
            before = make_ptx(self, *arguments)
            after = change(before)
            assert after != before, "nothing was changed"
            return after

        monkeypatch.setattr(CUDABackend, "make_ptx", made)
        with pytest.raises(CertificateError) as caught:
            compile(kernel, SM90, options={"bitstable_verify": True}, **TILE | constants)
        return caught.value

    return compile_changed


def line_of(text):
    with open(kernels.__file__) as source:
        lines = source.read().splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if text in line]
    return found


def test_a_wrong_shuffle_is_refuted_at_the_users_line(changed):
    error = changed(
        lambda ptx: re.sub(r"(shfl\.sync\.bfly\.b32.*), 1, 31,", r"\1, 2, 31,", ptx, count=1)
    )
    assert error.refuted
    (diagnostic,) = error.diagnostics
    place = (diagnostic.file, diagnostic.line)
    assert place == (kernels.__file__, line_of("tl.sum(_tile(x, M, N), axis=AXIS, order=ORDER)"))
    message = str(error)
    assert "does not fold the canonical tree: combines elements" in message
    assert "_store_kept(out, tl.sum(_tile(x, M, N), axis=AXIS" in message, "the line is shown"
    assert re.search(r"at line \d+ of the PTX", message)


def test_another_order_of_elements_is_refuted(changed):
    def swap(ptx):
        """Exchanges the right operands of the first two additions."""
        first, second = list(re.finditer(r"add\.rn\.f32 \s*%r\d+, %r\d+, (%r\d+);", ptx))[:2]
        (a, b), (c, d) = first.span(1), second.span(1)
        return ptx[:a] + second[1] + ptx[b:c] + first[1] + ptx[d:]

    error = changed(swap)
    assert error.refuted
    assert (
        "combines element 0 with element 3 where the canonical tree combines element 0 with"
        in str(error)
    )


def test_a_rounding_that_is_not_written_is_refuted(changed):
    error = changed(lambda ptx: ptx.replace("add.rn.f32", "add.f32"))
    assert "`add.rn.f32` whose rounding is not written: ptxas may contract it" in str(error)


def test_a_contraction_is_refuted(changed):
    pattern = r"add\.rn\.f32 \s*(%r\d+), (%r\d+), (%r\d+);"
    error = changed(lambda ptx: re.sub(pattern, r"fma.rn.f32 \1, \2, \2, \3;", ptx))
    assert "contracted into the addition" in str(error)


def test_operands_in_another_order_are_refuted(changed):
    def exchanged(ptx):
        """The second product takes the upper part."""
        places = list(re.finditer(r"mul\.rn\.f32 \s*(%r\d+), (%r\d+), ", ptx))
        adds = re.search(rf"add\.rn\.f32 \s*(%r\d+), {re.escape(places[1][1])}, (%r\d+);", ptx)
        start, end = places[1].span(2)
        ptx = ptx[: adds.start(2)] + places[1][2] + ptx[adds.end(2) :]
        return ptx[:start] + adds[2] + ptx[end:]

    error = changed(exchanged, kernels.halve_tile)
    assert error.refuted and re.search(r"combines .* as .*, but .* as ", str(error))


def test_marks_that_are_lost_are_no_certificate(changed):
    error = changed(lambda ptx: re.sub(r"// bitstable\.result.*", "", ptx))
    assert not error.refuted
    assert "none of its results is in the PTX" in str(error)
    error = changed(lambda ptx: re.sub(r"// bitstable\..*", "", ptx))
    assert "none of its results is in the PTX" in str(error)
    error = changed(lambda ptx: ptx.replace("pin=0", "pin=zero", 1))
    assert "the mark `element pin=zero" in str(error)


def test_what_cannot_be_followed_is_no_certificate(changed):
    error = changed(lambda ptx: ptx.replace("%tid.x", "%smid", 1))
    assert not error.refuted
    message = str(error)
    assert "has no certificate, its PTX could not be checked: a special register" in message
    assert "bitstable_verify = False" in message, "how to go on without"


def test_the_error_is_a_compilation_error_and_can_be_pickled(changed):
    error = changed(lambda ptx: ptx.replace("add.rn.f32", "add.f32"))
    assert isinstance(error, ReductionOrderError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.refuted, again.diagnostics) == (str(error), True, error.diagnostics)
