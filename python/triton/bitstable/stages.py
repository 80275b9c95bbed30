"""Where our passes sit in Triton's pipeline.

# Idea
`triton.compiler.compile` calls [`install`] after the back end has filled its table of stages, and
three of them are wrapped: `ttgir` first shields pinned reductions that came without shields (TTIR
text from elsewhere), `llir` first runs `reduce-layout` and `pin-reduce`, in one crossing. So the
TTGIR that is dumped and cached is what a kernel's author can read, and TTGIR text fed to the
compiler is pinned as well. `ptx` ends with the check of certificates, where they are asked for
(`verify`).

# Invariants
- **S1** A module without pinned reductions takes no detour: one walk finds that out, well under a
  microsecond an operation, and the module goes on untouched.
- **S2** No pin is lost in silence: a shield that `pin-reduce` leaves behind is an error, and so is
  a shield's symbol in the LLVM IR.

# Held by
S1: `tests/python/test_frontend_stock.py`. S2: `tests/python/test_native_lost_pin.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from triton.bitstable import _native, text, verify
from triton.bitstable.errors import PLEASE_REPORT, Diagnostic, ReductionOrderError
from triton.bitstable.frontend import ORDER_ATTRIBUTE, SHIELD_SYMBOL

# `triton-reorder-broadcast` moves elementwise operations, and so shields, to before these.
_SWAPPED_WITH_SHIELDS = frozenset({"tt.broadcast", "tt.splat"})

Stage = Callable[[Any, dict[str, Any]], Any]
REPORT_KEY = "bitstable"
PIPELINE = "reduce-layout,pin-reduce"


@dataclass
class Scan:
    """What one walk over a module finds: its body, its shields and its pinned reductions."""

    body: Any = None
    shields: set[int] = field(default_factory=set)
    pinned_operands: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, module: Any) -> Scan:
        """Walk `module`, which must be of Triton's dialects, in TTIR or TTGIR."""
        scan = cls()
        module.walk(scan._visit)
        return scan

    def _visit(self, op: Any) -> None:
        name = op.get_name()
        if name == "tt.reduce":
            if _has_attribute(op, ORDER_ATTRIBUTE):
                operands = range(op.get_num_operands())
                self.pinned_operands.update(op.get_operand(i).id() for i in operands)
        elif name == "tt.extern_elementwise":
            if op.get_str_attr("symbol") == SHIELD_SYMBOL:
                self.shields.add(op.get_result(0).id())
        elif name in _SWAPPED_WITH_SHIELDS:
            if op.get_operand(0).id() in self.shields:
                self.shields.add(op.get_result(0).id())
        elif name == "tt.func":
            self.body = op.get_block()

    @property
    def concerns_us(self) -> bool:
        """Whether the native library must see the module."""
        return bool(self.shields or self.pinned_operands)

    @property
    def lacks_shields(self) -> bool:
        """Whether a pinned reduction reads an operand that the optimiser recognises."""
        return not self.pinned_operands <= self.shields


def _has_attribute(op: Any, name: str) -> bool:
    # Whatever its type: a malformed order is the native library's to refuse, not ours to skip.
    getters = (op.get_str_attr, op.get_int_attr, op.get_bool_attr)
    return any(get(name) is not None for get in getters)


def rewrite(module: Any, pipeline: str, scan: Scan | None = None) -> tuple[Any, dict[str, Any]]:
    """Run `pipeline` of the native library over `module`; the new module and the report."""
    scan = scan or Scan.of(module)
    if scan.body is None:  # no function, so nothing to print from, and nothing to do
        return module, {"reductions": []}
    generic = text.print_generic(scan.body)
    result, report = _native.library().rewrite(generic, pipeline)
    try:
        return text.parse(result, module.context), report
    except RuntimeError:  # the parser's reason is on stderr
        raise ReductionOrderError([_UNREADABLE], bug=True) from None


def install(stages: dict[str, Stage]) -> None:
    """Wrap the stages of one compilation, in place."""
    if "ttgir" in stages:
        stages["ttgir"] = _shield_first(stages["ttgir"])
    if "llir" in stages:
        stages["llir"] = _pin_first(stages["llir"])
    if "ptx" in stages:
        stages["ptx"] = verify.checked(stages["ptx"], REPORT_KEY)


def _shield_first(make_ttgir: Stage) -> Stage:
    def ttgir(src: Any, metadata: dict[str, Any]) -> Any:
        scan = Scan.of(src)
        if scan.lacks_shields:
            src, _ = rewrite(src, "shield-reduce", scan)
        return make_ttgir(src, metadata)

    return ttgir


def _pin_first(make_llir: Stage) -> Stage:
    def llir(src: Any, metadata: dict[str, Any]) -> Any:
        scan = Scan.of(src)
        if not scan.concerns_us:
            return make_llir(src, metadata)
        module, metadata[REPORT_KEY] = _pinned(src, scan, verify.marks(metadata))
        result = make_llir(module, metadata)
        if SHIELD_SYMBOL in result:
            raise ReductionOrderError([_SURVIVOR], bug=True)
        return result

    return llir


def _pinned(src: Any, scan: Scan, marked: bool) -> tuple[Any, dict[str, Any]]:
    try:
        return rewrite(src, _with_marks(PIPELINE) if marked else PIPELINE, scan)
    except ReductionOrderError as error:
        if error.diagnostics != (_UNREADABLE,):
            raise
        # A cheaper layout must never cost a compilation: the bits are the same without it.
        return rewrite(src, _with_marks("pin-reduce") if marked else "pin-reduce", scan)


def _with_marks(pipeline: str) -> str:
    return pipeline.replace("pin-reduce", "pin-reduce{certify=true}")


_UNREADABLE = Diagnostic(
    "Triton does not accept the module that the native library made", help=PLEASE_REPORT
)
_SURVIVOR = Diagnostic(
    f"the symbol {SHIELD_SYMBOL} of a pinned reduction's shield reached LLVM IR: "
    "its order would be lost",
    help=PLEASE_REPORT,
)
