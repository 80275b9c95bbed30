"""The report: means, violations, failures and losses, as Markdown.

# Invariants
- **R1** Every row that is dearer than stock's in anything is named.

# Not here
What is a loss or a violation (`figures.py`).
"""

from __future__ import annotations

from cost.figures import (
    GOALS,
    QUANTITIES,
    WAYS,
    Row,
    by_target,
    faults,
    losses,
    reached,
    regressions,
    summary,
    violations,
)

HEADINGS = {"cycles_memory": "cycles, from memory"}


def _table(head: list[str], lines: list[list[str]]) -> list[str]:
    rule = ["---", *("---:" for _ in head[1:])]
    return [f"| {' | '.join(line)} |" for line in (head, rule, *lines)]


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def means(rows: list[Row]) -> list[str]:
    """A table of geometric means a target."""
    lines = []
    for target, subsets in summary(rows).items():
        lines += [f"\n## {target}: geometric means\n"]
        body = [
            [f"{pair}, {subset}", *(_ratio(of[quantity]) for quantity in QUANTITIES)]
            for subset, pairs in subsets.items()
            for pair, of in pairs.items()
        ]
        lines += _table(["", *(HEADINGS.get(q, q) for q in QUANTITIES)], body)
    return lines


def goals(rows: list[Row]) -> list[str]:
    """A line a mean that is to be reached: its limit, and what stands at each target."""
    targets = by_target(rows)
    lines = []
    for goal in GOALS:
        found = {target: reached(of, goal) for target, of in targets.items()}
        for quantity in goal.quantities:
            at = [of.get(quantity) for of in found.values()]
            if any(value is not None for value in at):
                name = f"{HEADINGS.get(quantity, quantity)}, {goal.way}/{goal.other}, {goal.subset}"
                marks = [
                    _ratio(value) + (" ✗" if value is not None and value > goal.limit else "")
                    for value in at
                ]
                lines.append([name, f"{goal.limit:.2f}", *marks])
    if not lines:
        return []
    return ["\n## Means to reach\n", *_table(["", "at most", *targets], lines)]


def _failures(rows: list[Row]) -> list[str]:
    lines = []
    broken = regressions(rows)
    lines += [f"\n## Compile regressions: {len(broken)}\n"]
    lines += [f"- {row.target}: {row.name}: {row.error('ours')}" for row in broken]
    for way in WAYS:
        failed = [row for row in rows if row.error(way) and row not in broken]
        if failed:
            lines += [f"\n## Not compiled by {way}: {len(failed)}\n"]
            lines += [f"- {row.target}: {row.name}: {row.error(way)}" for row in failed]
    for reason, failed in faults(rows).items():
        lines += [f"\n## Faults of the bench: {reason}: {len(failed)}\n"]
        lines += [f"- {row.target}: {row.name}" for row in failed]
    return lines


def _violations(rows: list[Row]) -> list[str]:
    found = violations(rows)
    lines = [f"\n## Beyond what is allowed to one kernel: {len(found)}\n"]
    for target in by_target(rows):
        lines += [
            f"- {target}: {v.row.name}: {v.rule} ({v.found})"
            for v in found
            if v.row.target == target
        ]
    return lines


def _counts(row: Row, way: str) -> str:
    found = row.figures(way)
    if found is None:
        return "–"
    return (
        f"{found['shuffles']} {found['shared_loads']} {found['shared_stores']} {found['barriers']}"
    )


def comparisons(rows: list[Row]) -> list[str]:
    """A line a row: ratios, and what both do."""
    head = [
        "kernel",
        *(HEADINGS.get(q, q) for q in QUANTITIES),
        "cycles",
        "shuffles, loads, stores, barriers",
        "registers",
    ]
    body = [
        [
            row.name + (" †" if row.unrolled() else ""),
            *(_ratio(row.ratio(quantity)) for quantity in QUANTITIES),
            f"{stock['cycles']:.0f} → {ours['cycles']:.0f}",
            f"{_counts(row, 'stock')} → {_counts(row, 'ours')}",
            f"{stock['registers']} → {ours['registers']}",
        ]
        for row in rows
        if (stock := row.figures("stock")) and (ours := row.figures("ours"))
    ]
    return _table(head, body)


def _losses(rows: list[Row]) -> list[str]:
    lines = []
    for target, of in by_target(rows).items():
        both = [row for row in of if row.ratio("cycles") is not None]
        lost = losses(both)
        lines += [f"\n## {target}: dearer than stock in anything: {len(lost)} of {len(both)}\n"]
        lines += comparisons(lost) if lost else []
    return lines


def report(rows: list[Row], everything: bool) -> str:
    """The whole report; with `everything`, a line of each row as well."""
    lines = [*goals(rows), *means(rows), *_violations(rows), *_failures(rows), *_losses(rows)]
    if everything:
        for target, of in by_target(rows).items():
            lines += [f"\n## {target}: every kernel\n", *comparisons(of)]
    if any(row.unrolled() for row in rows):
        lines.append("\n† Loops are unrolled differently: cycles are compared by the sector moved.")
    return "\n".join(lines).strip()
