"""A sweep's result as text, and as JSON.

# Idea
A class of a hundred configurations is a few boxes: sets of values on each axis whose product it
is. Axes that never vary are told once, above the table.

# Invariants
- **T1** The boxes of a class cover it, and nothing else; none overlaps another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from triton.bitstable.bits.classes import BitClass, Classes, Verdict, count
from triton.bitstable.bits.configurations import Configuration, show
from triton.bitstable.bits.execution import Outcome, Status

SCHEMA = 1
_SHOWN = 12  # digits of a class's bits

Box = tuple[tuple[Any, ...], ...]


def boxes(configurations: Iterable[Configuration], axes: Sequence[str]) -> list[Box]:
    """The configurations as products, merged axis by axis; values in the order they came."""
    rows: list[Box] = [tuple((each.axes().get(axis),) for axis in axes) for each in configurations]
    for at in range(len(axes)):
        merged: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for row in rows:
            rest = row[:at] + row[at + 1 :]
            merged[rest] = merged.get(rest, ()) + row[at]
        rows = [(*rest[:at], values, *rest[at:]) for rest, values in merged.items()]
    return rows


def _varying(configurations: list[Configuration]) -> tuple[list[str], dict[str, Any]]:
    """The axes on which configurations differ, and the values of the others."""
    described = [each.axes() for each in configurations]
    names = list(dict.fromkeys(name for axes in described for name in axes))
    values = {
        name: list(dict.fromkeys(map(repr, (a.get(name) for a in described)))) for name in names
    }
    varying = [name for name in names if len(values[name]) > 1]
    return varying, {name: described[0].get(name) for name in names if name not in varying}


def grid(rows: list[list[str]]) -> list[str]:
    """Lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def render(classes: Classes) -> str:
    """The whole result."""
    varying, fixed = _varying([outcome.configuration for outcome in classes.outcomes])
    job = classes.job
    lines = [
        f"{classes.kernel}: {count(len(classes.outcomes), 'configuration')}, "
        f"{count(classes.codes, 'code')}, {count(len(classes), 'class')}",
        f"draws (seed {job.seed}): {', '.join(draw.name for draw in job.draws)}",
    ]
    if fixed:
        lines.append(" ".join(f"{name}={show(value)}" for name, value in fixed.items()))
    if classes.classes:
        lines += ["", *grid(_class_rows(classes, varying))]
        lines += _differences(classes)
    lines += _listed("not run:", classes.not_run, varying)
    lines += _found(classes.failed, varying)
    lines += _noted(classes)
    return "\n".join(lines)


def _class_rows(classes: Classes, varying: list[str]) -> list[list[str]]:
    rows = [["class", "configurations", *varying]]
    for each in classes.classes:
        for at, box in enumerate(boxes(each.configurations, varying)):
            head = ["", ""] if at else [each.bits[:_SHOWN], str(len(each.outcomes))]
            rows.append([*head, *(" ".join(map(show, values)) for values in box)])
    return rows


def _differences(classes: Classes) -> list[str]:
    first, *others = classes.classes
    if not others:
        return []
    lines = ["", f"against {first.bits[:_SHOWN]}:"]
    for other in others:
        lines.append(f"  {other.bits[:_SHOWN]}: {classes.difference(other, first)}")
    return lines


def _listed(head: str, outcomes: list[Outcome], varying: list[str]) -> list[str]:
    """Outcomes by reason, each with the boxes it befell."""
    by_reason: dict[str, list[Configuration]] = {}
    for outcome in outcomes:
        by_reason.setdefault(outcome.reason, []).append(outcome.configuration)
    lines: list[str] = []
    for reason, configurations in by_reason.items():
        lines += [f"  {reason}", *_where(configurations, varying)]
    return ["", head, *lines] if lines else []


def _where(configurations: list[Configuration], varying: list[str]) -> list[str]:
    return (
        [
            "    "
            + " ".join(
                f"{axis}={','.join(map(show, values))}"
                for axis, values in zip(varying, box, strict=True)
            )
            for box in boxes(configurations, varying)
        ]
        if varying
        else []
    )


def _found(failed: list[Outcome], varying: list[str]) -> list[str]:
    by_text: dict[str, list[Configuration]] = {}
    for outcome in failed:
        for finding in outcome.findings:
            if finding.severity == "error":
                text = f"draw {finding.draw}: {finding.text}"
                by_text.setdefault(text, []).append(outcome.configuration)
    lines: list[str] = []
    for text, configurations in by_text.items():
        lines += [_indented(text), *_where(configurations, varying)]
    return ["", "errors:", *lines] if lines else []


def _noted(classes: Classes) -> list[str]:
    """The first note of each kind, and how many there are: a correct kernel has hundreds."""
    by_kind: dict[str, list[str]] = {}
    for note in classes.notes:
        by_kind.setdefault(note.kind, []).append(note.text)
    lines: list[str] = []
    for texts in by_kind.values():
        lines.append(_indented(texts[0].splitlines()[0]))
        if len(texts) > 1:
            lines.append(f"    and {len(texts) - 1} more; --json has them in full")
    return ["", "notes:", *lines] if lines else []


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())


def to_json(classes: Classes, verdict: Verdict) -> dict[str, Any]:
    """The whole result, for programs."""
    job = classes.job
    first = classes.classes[0] if classes.classes else None
    return {
        "schema": SCHEMA,
        "kernel": classes.kernel,
        "seed": job.seed,
        "draws": [draw.name for draw in job.draws],
        "configurations": len(classes.outcomes),
        "codes": classes.codes,
        "classes": [_class_json(classes, each, first) for each in classes.classes],
        "not_run": [
            {**_at(outcome), "exceeds": outcome.status is Status.EXCEEDS, "reason": outcome.reason}
            for outcome in classes.not_run
        ],
        "errors": [
            {**_at(outcome), "draw": finding.draw, "kind": finding.kind, "text": finding.text}
            for outcome in classes.failed
            for finding in outcome.findings
            if finding.severity == "error"
        ],
        "notes": [
            {"draw": note.draw, "kind": note.kind, "text": note.text} for note in classes.notes
        ],
        "demand": {
            "name": verdict.demand,
            "holds": bool(verdict),
            "exit": int(verdict.exit),
            "reasons": list(verdict.reasons),
        },
    }


def _at(outcome: Outcome) -> dict[str, Any]:
    return {"configuration": outcome.configuration.axes()}


def _class_json(classes: Classes, each: BitClass, first: BitClass) -> dict[str, Any]:
    difference = None if each is first else classes.difference(each, first)
    return {
        "bits": each.bits,
        "configurations": [configuration.axes() for configuration in each.configurations],
        "difference": None
        if difference is None
        else {
            "draw": difference.draw,
            "buffer": difference.buffer,
            "element": difference.element,
            "here": difference.values[0],
            "in_first_class": difference.values[1],
            "elements": difference.differing,
        },
    }
