"""The launch grid, as the command line and the library take it.

# Idea
A grid often follows from a swept constant, so an axis may be an expression over the constants and
the scalar arguments: `cdiv(n, BLOCK)`. It is read by Python's parser and evaluated here, over
integers, with nothing else in reach.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from triton.bitstable.bits.errors import UsageError

Grid = int | str | tuple[Any, ...] | Callable[[dict[str, Any]], Any]
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "cdiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}


def resolve(grid: Grid, names: Mapping[str, Any]) -> tuple[int, ...]:
    """One to three extents; `names` are the constants and scalars of one configuration."""
    if callable(grid):
        grid = grid(dict(names))
    if isinstance(grid, str):
        grid = _axes(grid, names)
    if isinstance(grid, int):
        grid = (grid,)
    extents = tuple(int(extent) for extent in grid)
    if not 1 <= len(extents) <= 3 or any(extent < 1 for extent in extents):
        raise UsageError(f"grid {extents}: one to three positive extents are needed")
    return extents


def _axes(text: str, names: Mapping[str, Any]) -> tuple[int, ...]:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        axes = tree.elts if isinstance(tree, ast.Tuple) else [tree]
        return tuple(_value(axis, names) for axis in axes)
    except (SyntaxError, TypeError, ZeroDivisionError) as error:
        raise UsageError(f"grid {text!r}: {error}") from None


def _value(node: ast.expr, names: Mapping[str, Any]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        if isinstance(names.get(node.id), int):
            return names[node.id]
        known = ", ".join(name for name, value in names.items() if isinstance(value, int))
        raise UsageError(f"grid: {node.id} is not an integer known here; known: {known or 'none'}")
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get(node.func.id)
        if function is not None:
            return function(*(_value(argument, names) for argument in node.args))
    raise UsageError("grid: integers, names, + - * // %, cdiv, min and max are understood")
