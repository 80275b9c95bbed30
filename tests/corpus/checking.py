"""The gate: the static checker's classes, held against the labels of a corpus.

# Idea
The checker is asked for the classes of all compiled configurations, each with the facts of its
launch, a group for each case. Two configurations of one class with different labels are an
*over-merge*: the checker called the same what was seen to differ. Of labelled configurations, the
number of proved classes over that of observed ones says how precise it is; 1.0 is the best. They
are counted within a target, and across targets besides: the executor has one model of approximate
functions for all targets, where hardware promises equal bits on one, and the checker keeps to that.

# Invariants
- **J1** Each configuration with PTX is in exactly one class, or unanswered. An answer that says
  otherwise is an error, never a pass.
- **J2** A configuration without a label is no witness: what it is merged with is reported apart.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton.bitstable.bits.table import grid

from corpus.building import CorpusError
from corpus.matrices import KIND

Line = dict[str, Any]


@dataclass
class Row:
    """One kernel's numbers; `proved` and `observed` count classes of labelled configurations.

    Those of one target alone; `_across`, of all targets.
    """

    kernel: str
    configurations: int = 0
    labelled: int = 0
    observed: int = 0
    proved: int = 0
    observed_across: int = 0
    proved_across: int = 0
    over_merges: int = 0
    #: Classes that have both configurations with labels and configurations whose runs had errors.
    with_errors: int = 0
    #: Configurations that the checker could not follow, and those it did not answer for.
    not_followed: int = 0
    unanswered: int = 0
    texts: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def ratio(self) -> float:
        """Proved classes over observed ones, of one target each."""
        return self.proved / self.observed if self.observed else 0.0

    @property
    def ratio_across(self) -> float:
        """The same where configurations of different targets may be one class."""
        return self.proved_across / self.observed_across if self.observed_across else 0.0

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        ratios = {name: round(getattr(self, name), 3) for name in ("ratio", "ratio_across")}
        return {**vars(self), **ratios, "reasons": dict(self.reasons)}


@dataclass(frozen=True)
class OverMerge:
    """Two configurations that were proved the same and seen to differ."""

    first: Line
    second: Line
    signature: str

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return vars(self)

    def __str__(self) -> str:
        told = [f"{self.first['case']}: one class ({self.signature}), different bytes"]
        for each in (self.first, self.second):
            axes = " ".join(f"{name}={value}" for name, value in each["configuration"].items())
            told.append(f"  {each['ptx']} {each['label'][:12]} {axes}")
        return "\n".join(told)


@dataclass
class Judgement:
    """The whole result."""

    rows: list[Row]
    over_merges: list[OverMerge]
    seconds: float = 0.0

    @property
    def exit(self) -> int:
        """0: no over-merge; 1: some; 2: no answer for some configuration."""
        if self.over_merges:
            return 1
        return 2 if any(row.unanswered for row in self.rows) else 0

    def total(self, kind: str = "") -> Row:
        """Of all kernels, or of those of one kind."""
        total = Row(kind or "all")
        for row in self.rows:
            if kind and KIND[row.kernel] != kind:
                continue
            for name, value in vars(row).items():
                if name != "kernel":
                    setattr(total, name, getattr(total, name) + value)
        return total


def launches(folder: Path, found: Iterable[Line]) -> list[dict[str, Any]]:
    """What `bitstable equiv --launches` takes; scalars go as bits."""
    return [
        {
            "file": str(folder / "ptx" / line["ptx"]),
            "name": str(at),
            "group": line["case"],
            "entry": line["entry"],
            "grid": line["grid"],
            "block": [line["threads"]],
            "scalars": {index: f"{bits:#x}" for index, bits in line["scalars"].items()},
        }
        for at, line in enumerate(found)
    ]


def ask(command: str, asked: list[dict[str, Any]], jobs: int | None) -> dict[str, Any]:
    """The checker's answer, as `bitstable equiv --json` gives it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(asked, file)
        file.flush()
        told = [command, "equiv", "--json", "--launches", file.name]
        told += ["--jobs", str(jobs)] if jobs else []
        run = subprocess.run(told, capture_output=True, text=True)
    try:
        return json.loads(run.stdout)
    except json.JSONDecodeError:
        reason = run.stderr.strip().splitlines()[:3]
        raise CorpusError(f"{command} equiv: status {run.returncode}: {reason}") from None


def judge(found: list[Line], answer: dict[str, Any]) -> Judgement:
    """Hold an answer against the labels."""
    unanswered = {error["kernel"] for error in answer["errors"]}
    members = [at for each in answer["classes"] for at in each["kernels"]]
    if sorted([*members, *unanswered]) != list(range(len(found))):
        raise CorpusError("the checker's answer has a kernel twice, or lacks one")
    rows: dict[str, Row] = {}
    for at, line in enumerate(found):
        row = rows.setdefault(line["kernel"], Row(line["kernel"]))
        row.configurations += 1
        row.labelled += line["label"] is not None
        row.unanswered += at in unanswered
    for error in answer["errors"]:
        rows[found[error["kernel"]]["kernel"]].reasons[error["error"]] += 1
    over_merges: list[OverMerge] = []
    for each in answer["classes"]:
        lines = [found[at] for at in each["kernels"]]
        if len({line["case"] for line in lines}) != 1:
            raise CorpusError(f"class {each['signature']} has kernels of several groups")
        _count(rows[lines[0]["kernel"]], each, lines)
        over_merges += _over_merges(each, lines)
    for row in rows.values():
        own = [line for line in found if line["kernel"] == row.kernel]
        row.texts = len({line["ptx"] for line in own})
        labelled = [line for line in own if line["label"]]
        row.observed_across = len({(line["case"], line["label"]) for line in labelled})
        row.observed = len({(line["case"], line["label"], _target(line)) for line in labelled})
        row.over_merges = sum(each.first["kernel"] == row.kernel for each in over_merges)
    return Judgement(sorted(rows.values(), key=lambda row: row.kernel), over_merges)


def _count(row: Row, told: dict[str, Any], lines: list[Line]) -> None:
    targets = [_target(line) for line in lines if line["label"] is not None]
    row.proved += len(set(targets))
    row.proved_across += len(targets) > 0
    row.with_errors += 0 < len(targets) < len(lines)
    if obstacle := told.get("obstacle"):
        row.not_followed += len(lines)
        row.reasons[obstacle["what"]] += len(lines)


def _target(line: Line) -> str:
    return line["configuration"]["target"]


def _over_merges(told: dict[str, Any], lines: list[Line]) -> list[OverMerge]:
    """The class's first configuration against the first of each other label."""
    by_label: dict[str, Line] = {}
    for line in lines:
        if line["label"] is not None:
            by_label.setdefault(line["label"], line)
    first, *others = list(by_label.values()) or [None]
    return [OverMerge(first, other, told["signature"]) for other in others]


def check(folder: Path, found: list[Line], command: str, jobs: int | None = None) -> Judgement:
    """Ask the checker about the configurations that have PTX, and judge its answer."""
    found = [line for line in found if "ptx" in line]
    began = time.monotonic()
    judgement = judge(found, ask(command, launches(folder, found), jobs))
    judgement.seconds = time.monotonic() - began
    return judgement


_SHOWN = ("kernel", "configurations", "texts", "labelled", "observed", "proved", "ratio",
          "ratio_across",
          "over_merges", "with_errors", "not_followed", "unanswered")  # fmt: skip


def kinds(judgement: Judgement) -> list[str]:
    """The kinds of kernels that were judged."""
    return list(dict.fromkeys(KIND[row.kernel] for row in judgement.rows))


def show(judgement: Judgement, as_json: bool) -> None:
    """Print the table, the over-merges and why kernels were not followed."""
    if as_json:
        print(json.dumps(to_json(judgement), indent=1))
        return
    rows = [*judgement.rows, *map(judgement.total, kinds(judgement)), judgement.total()]
    cells = [
        [f"{v:.2f}" if isinstance(v := getattr(row, name), float) else str(v) for name in _SHOWN]
        for row in rows
    ]
    print("\n".join(grid([[name.replace("_", "-") for name in _SHOWN], *cells])))
    kernels: dict[str, list[str]] = defaultdict(list)
    for row in judgement.rows:
        for reason in row.reasons:
            kernels[reason].append(row.kernel)
    for reason, count in judgement.total().reasons.most_common():
        print(f"{count} x {reason} ({', '.join(kernels[reason][:4])})")
    for each in judgement.over_merges:
        print(f"over-merge: {each}")
    print(f"{len(judgement.over_merges)} over-merges; the checker took {judgement.seconds:.1f} s")


def to_json(judgement: Judgement) -> dict[str, Any]:
    """The whole result, for programs."""
    return {
        "kernels": [row.as_json() for row in judgement.rows],
        "kinds": [judgement.total(kind).as_json() for kind in kinds(judgement)],
        "total": judgement.total().as_json(),
        "over_merges": [each.as_json() for each in judgement.over_merges],
        "seconds": round(judgement.seconds, 3),
        "exit": judgement.exit,
    }
