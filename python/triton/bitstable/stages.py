"""Where our passes sit in Triton's pipeline.

# Idea
`triton.compiler.compile` calls [`install`] after the back end has filled its table of stages, and
three of them are wrapped: `ttgir` first shields pinned reductions that came without shields (TTIR
text from elsewhere), `llir` first runs `reduce-layout` and `pin-reduce`, in one crossing. So the
TTGIR that is dumped and cached is what a kernel's author can read, and TTGIR text fed to the
compiler is pinned as well. Where a layout was rewritten, `llir` also sees to it that the machine
code is no worse for it, and else tries the next strategy (`lookahead`). `ptx` ends with the check
of certificates, where they are asked for (`verify`).

# Invariants
- **S1** A module without pinned reductions takes no detour: one walk finds that out, well under a
  microsecond an operation, and the module goes on untouched.
- **S2** No pin is lost in silence: a shield that `pin-reduce` leaves behind is an error, and so is
  a shield's symbol in the LLVM IR.
- **S3** A rewritten layout never costs a compilation: the bits are the same without it.

# Held by
S1: `tests/python/test_frontend_stock.py`. S2: `tests/python/test_native_lost_pin.py`. S3:
`tests/python/test_layout_fallback.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from triton import knobs
from triton.bitstable import _native, lookahead, strategies, text, verify
from triton.bitstable.errors import PLEASE_REPORT, Diagnostic, ReductionOrderError
from triton.bitstable.frontend import ORDER_ATTRIBUTE, SHIELD_SYMBOL

# `triton-reorder-broadcast` moves elementwise operations, and so shields, to before these.
_SWAPPED_WITH_SHIELDS = frozenset({"tt.broadcast", "tt.splat"})

Stage = Callable[[Any, dict[str, Any]], Any]
REPORT_KEY = "bitstable"
FALLBACK_KEY = "fallback"
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
    if "ptx" in stages:
        stages["ptx"] = verify.checked(stages["ptx"], REPORT_KEY)
    if "llir" in stages:
        names = list(stages)
        later = names[names.index("llir") + 1 :]
        ahead = lookahead.LookAhead({name: stages[name] for name in later})
        stages["llir"] = _pin_first(stages["llir"], ahead)
        stages.update((name, ahead.stage(name)) for name in later)


def _shield_first(make_ttgir: Stage) -> Stage:
    def ttgir(src: Any, metadata: dict[str, Any]) -> Any:
        scan = Scan.of(src)
        if scan.lacks_shields:
            src, _ = rewrite(src, "shield-reduce", scan)
        return make_ttgir(src, metadata)

    return ttgir


def _pin_first(make_llir: Stage, ahead: lookahead.LookAhead) -> Stage:
    def llir(src: Any, metadata: dict[str, Any]) -> Any:
        scan = Scan.of(src)
        if not scan.concerns_us:
            return make_llir(src, metadata)
        attempts: list[lookahead.Attempt] = []
        given_up: list[dict[str, str]] = []
        for plan in _plans(src, scan, metadata, given_up):
            if not attempts and not plan.layouts:
                plan.settle(given_up)
                return plan.lower(make_llir)(plan.module, metadata)
            attempt = ahead.attempt(plan, plan.lower(make_llir), plan.module, metadata)
            attempts.append(attempt)
            if attempt.fault is None:
                break
        chosen = lookahead.best(attempts)
        others = (attempt for attempt in attempts if attempt is not chosen)
        given_up += ({"strategy": a.plan.strategy, "why": a.fault} for a in others)
        chosen.plan.settle(given_up)
        chosen.annotate(REPORT_KEY, chosen.plan.report)
        return ahead.take(chosen, metadata)

    return llir


@dataclass
class Plan:
    """One way to lower a module: under which strategy, to what, and what the library says of it."""

    strategy: str
    module: Any
    report: dict[str, Any]

    @property
    def layouts(self) -> list[dict[str, Any]]:
        """The layouts that were rewritten."""
        return self.report.get("layouts", [])

    def lower(self, make_llir: Stage) -> Stage:
        """The stage that makes LLVM IR of the module."""

        def lower(module: Any, metadata: dict[str, Any]) -> Any:
            metadata[REPORT_KEY] = self.report
            result = make_llir(module, metadata)
            if SHIELD_SYMBOL in result:
                raise ReductionOrderError([_SURVIVOR], bug=True)
            return result

        return lower

    def settle(self, given_up: list[dict[str, str]]) -> None:
        """Say that this plan is taken, and why others were not."""
        # What was said is printed and not kept: the metadata of a kernel does not depend on it.
        remarks = [Diagnostic.from_json(entry) for entry in self.report.pop("diagnostics", ())]
        if given_up:
            self.report[FALLBACK_KEY] = given_up
        if knobs.language.bitstable_remarks:
            remarks += (Diagnostic(_LEFT.format(**entry), "remark") for entry in given_up)
            for remark in remarks:
                print(remark.render(), file=sys.stderr)


def _plans(
    src: Any, scan: Scan, metadata: dict[str, Any], given_up: list[dict[str, str]]
) -> Iterator[Plan]:
    """The plans to try, no two alike; the last rewrites no layout."""
    chosen = strategies.strategy(metadata.get(strategies.OPTION))
    marked = verify.marks(metadata)
    tried: list[Any] = []
    for strategy in strategies.fallbacks(chosen):
        if given_up and strategy != strategies.OFF:  # a strategy more, and the same fault of ours
            continue
        try:
            plan = Plan(strategy, *rewrite(src, _pipeline(strategy, marked), scan))
        except ReductionOrderError as error:
            if error.diagnostics != (_UNREADABLE,) or strategy == strategies.OFF:
                raise
            given_up.append({"strategy": strategy, "why": _UNREADABLE.message})
            continue
        if not plan.layouts:
            yield plan
            return
        if plan.layouts not in tried:
            tried.append(plan.layouts)
            yield plan


def _pipeline(strategy: str, marked: bool) -> str:
    """The passes with their options; a pass without any is named alone."""
    layout, pin = [], []
    if strategy != strategies.AUTO:
        layout.append(f"strategy={strategy}")
    if knobs.language.bitstable_remarks:
        layout.append("remarks=true")
        pin.append("print-plan=true")
    if marked:
        pin.append("certify=true")
    passes = "pin-reduce" if strategy == strategies.OFF else PIPELINE
    for name, options in (("reduce-layout", layout), ("pin-reduce", pin)):
        if options:
            passes = passes.replace(name, f"{name}{{{' '.join(options)}}}")
    return passes


_LEFT = "the code of strategy {strategy} was not taken: {why}"
_UNREADABLE = Diagnostic(
    "Triton does not accept the module that the native library made", help=PLEASE_REPORT
)
_SURVIVOR = Diagnostic(
    f"the symbol {SHIELD_SYMBOL} of a pinned reduction's shield reached LLVM IR: "
    "its order would be lost",
    help=PLEASE_REPORT,
)
