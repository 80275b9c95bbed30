"""Plots: pinned against free, a point for each kernel and number of warps, as SVG.

# Idea
Both axes are logarithmic and alike, so that a ratio is a distance from the diagonal: what lies
below it is cheaper pinned. One file a target, one panel a quantity; ours is coloured by its warps,
the peer stands behind in grey. The worst three of ours in each panel are named.

# Invariants
- **P1** The same rows give the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

from cost.figures import Row, by_target, mean

PANELS = ("instructions", "cycles", "communication")
NAMED = 3
INK, GRID, PEER = "#24292f", "#d8dee4", "#b1bac4"
COLOURS = {1: "#440154", 2: "#414487", 4: "#2a788e", 8: "#22a884", 16: "#7ad151", 32: "#d8c616"}
STYLE = {
    "svg.hashsalt": "bitstable",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
}


def draw(rows: list[Row], folder: Path) -> list[Path]:
    """A file for each target that has anything to compare."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with matplotlib.rc_context(STYLE):
        for target, of in by_target(rows).items():
            chosen = [row for row in of if row.ratio("instructions")]
            if chosen:
                drawn.append(_target(target, chosen, folder / f"{target}.svg"))
    return drawn


def _target(target: str, rows: list[Row], path: Path) -> Path:
    figure, panels = pyplot.subplots(1, len(PANELS), figsize=(4.2 * len(PANELS), 5.0))
    for panel, quantity in zip(panels, PANELS, strict=True):
        _panel(panel, quantity, rows)
    figure.suptitle(f"{target}: pinned against free", x=0.01, ha="left", weight="bold")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path


def _value(row: Row, way: str, quantity: str) -> float:
    """Logarithms have no zero, so that `communication` is drawn one up, as its ratio is taken."""
    return row.figures(way)[quantity] + (quantity == "communication")


def _panel(panel: Any, quantity: str, rows: list[Row]) -> None:
    free = [_value(row, "stock", quantity) for row in rows]
    pinned = [_value(row, "ours", quantity) for row in rows]
    both = [row for row in rows if row.figures("peer")]
    peers = [_value(row, "peer", quantity) for row in both]
    low, high = min(free + pinned + peers) / 1.3, max(free + pinned + peers) * 1.3
    panel.plot([low, high], [low, high], color=INK, linewidth=0.8, zorder=1)
    if both:
        panel.scatter(
            [_value(row, "stock", quantity) for row in both],
            peers, s=9, marker="x", linewidths=0.7, color=PEER, label="peer", zorder=2,
        )  # fmt: skip
    for warps in dict.fromkeys(row.warps for row in rows):
        at = [i for i, row in enumerate(rows) if row.warps == warps]
        panel.scatter(
            [free[i] for i in at],
            [pinned[i] for i in at],
            s=13, linewidths=0, alpha=0.85, color=COLOURS[warps], zorder=3,
            label=f"{warps} warp{'s' if warps > 1 else ''}",
        )  # fmt: skip
    panel.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
    lost = [i for i, row in enumerate(rows) if row.ratio(quantity) > 1.0]
    for i in sorted(lost, key=lambda i: -rows[i].ratio(quantity))[:NAMED]:
        left = free[i] ** 2 < low * high
        panel.annotate(
            rows[i].name, (free[i], pinned[i]), xytext=(4 if left else -4, 4),
            textcoords="offset points", fontsize=6, ha="left" if left else "right", zorder=4,
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5},
        )  # fmt: skip
    panel.set_xlabel(f"free{' (+1)' if quantity == 'communication' else ''}")
    panel.set_ylabel("pinned")
    ours = mean(rows, quantity, "ours", "stock")
    panel.set_title(f"{quantity}: {ours:.3f} of free's", loc="left", fontsize=9)
    panel.grid(color=GRID, linewidth=0.5)
    panel.set_axisbelow(True)
