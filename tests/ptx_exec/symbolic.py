"""Floats as dependence trees: which leaves a value was computed from, and in which order.

# Idea
Beside its bits, a register or memory cell carries *pieces*: one integer per 16 bits, `node * 4 +
part`, or 0 where the bits are known numbers. Moves carry pieces along; arithmetic makes nodes. A
node is (operation, children), kept once. Commutative operations ignore the order of their operands.

# Invariants
- **S1** A value whose pieces do not form one whole node is never used as a float.
- **S2** An operation without a rule yields an opaque node over everything it read: a dependence is
  never lost, and an opaque node is never part of a canonical tree.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from .errors import PtxError
from .floats import UNSIGNED, WIDTH

Pieces = np.ndarray | None
NO_LEAF = 1 << 62
_COMMUTATIVE = ("add", "mul", "min", "max", "fma")
_ONE = {"f64": 0x3FF0000000000000, "f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


class Graph:
    """All nodes of one run. Node 0 stands for "a known number"."""

    def __init__(self) -> None:
        self.nodes: list[tuple] = [()]
        self.first: list[int] = [NO_LEAF]
        self.width = np.zeros(1024, np.uint8)
        self.known: dict[tuple, int] = {}

    def make(self, key: tuple, first: int, width: int) -> int:
        """The node for `key`, made if it is new."""
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.nodes)
            self.nodes.append(key)
            self.first.append(first)
            self._widths(found + 1)[found] = width
        return found

    def _widths(self, count: int) -> np.ndarray:
        """The table of node widths, grown to hold `count` entries."""
        if count > self.width.size:
            self.width = np.concatenate([self.width, np.zeros(count + self.width.size, np.uint8)])
        return self.width

    def leaves(self, buffer: int, count: int, unit: int) -> np.ndarray:
        """Pieces of a whole buffer of `count` elements of `unit` bytes."""
        start = len(self.nodes)
        self.nodes.extend(("leaf", buffer, element * unit) for element in range(count))
        self.first.extend((buffer << 40) + element * unit for element in range(count))
        self._widths(start + count)[start : start + count] = unit * 8
        ids = np.arange(start, start + count, dtype=np.int64)
        return (ids[:, None] * 4 + np.arange(unit // 2)).ravel()

    def constant(self, kind: str, bits: int) -> int:
        """A number that met a symbolic value."""
        return self.make(("const", kind, bits), NO_LEAF, WIDTH[kind])

    def operation(self, op: str, kind: str, args: tuple[int, ...]) -> int:
        """A float operation, with the identities that hold bit for bit applied."""
        if op == "fma":
            one = self.known.get(("const", kind, _ONE[kind]))
            minus_zero = self.known.get(("const", kind, 1 << (WIDTH[kind] - 1)))
            if minus_zero is not None and args[2] == minus_zero:
                return self.operation("mul", kind, args[:2])
            if one is not None and one in args[:2]:
                other = args[1] if args[0] == one else args[0]
                return self.operation("add", kind, (other, args[2]))
        if op in _COMMUTATIVE and args[0] > args[1]:
            args = (args[1], args[0], *args[2:])
        first = min(self.first[arg] for arg in args)
        return self.make((op, kind, *args), first, WIDTH[kind])

    def widen(self, kind: str, target: str, arg: int) -> int:
        """An exact conversion."""
        return self.make(("widen", f"{kind}.{target}", arg), self.first[arg], WIDTH[target])

    def narrow(self, source: str, kind: str, arg: int) -> int:
        """A rounding conversion; one operation in f32 on widened operands rounds as in `kind`.

        True for add, sub and mul of f16 and bf16, since 24 >= 2 * 11 + 2 (Figueroa).
        """
        node, wide = self.nodes[arg], f"{kind}.{source}"
        if node[0] == "widen" and node[1] == wide:
            return node[2]
        if node[0] in ("add", "sub", "mul") and node[1] == source == "f32":
            inner = [self._unwidened(child, kind, source) for child in node[2:]]
            if all(inner):
                return self.operation(node[0], kind, tuple(inner))
        return self.make(("narrow", f"{source}.{kind}", arg), self.first[arg], WIDTH[kind])

    def _unwidened(self, arg: int, kind: str, source: str) -> int:
        node = self.nodes[arg]
        if node[0] == "widen" and node[1] == f"{kind}.{source}":
            return node[2]
        if node[0] == "const" and kind == "bf16" and node[2] & 0xFFFF == 0:
            return self.constant(kind, node[2] >> 16)
        return 0

    def opaque(self, op: str, width: int, pieces: tuple[int, ...]) -> int:
        """An operation without a rule, over raw pieces."""
        first = min(self.first[piece >> 2] for piece in pieces)
        return self.make(("opaque", op, *pieces), first, width)

    def ids(self, pieces: Pieces, bits: np.ndarray, kind: str, mask: np.ndarray) -> np.ndarray:
        """The node of each thread's value, 0 for a number (S1)."""
        if pieces is None:
            return np.zeros(bits.shape[0], np.int64)
        ids = np.where(mask, pieces[0] >> 2, 0)
        parts = np.arange(len(pieces))[:, None]
        whole = (pieces == 0).all(0)
        whole |= (pieces == pieces[0] + parts).all(0) & (pieces[0] & 3 == 0)
        whole &= (ids == 0) | (self.width[ids] == WIDTH[kind])
        for at in np.flatnonzero(mask & ~whole):
            ids[at] = self._torn([int(p) for p in pieces[:, at]], int(bits[at]), kind)
        return ids

    def _torn(self, parts: list[int], bits: int, kind: str) -> int:
        node = parts[-1] >> 2
        if kind == "f32" and parts[0] == 0 and bits & 0xFFFF == 0 and self.width[node] == 16:
            return self.widen("bf16", "f32", node)
        if kind == "bf16" and parts[0] & 3 == 1 and self.nodes[node][:2] == ("widen", "bf16.f32"):
            return self.nodes[node][2]
        raise PtxError(f"a float operation reads a torn value: pieces {parts}")


def spread(ids: np.ndarray, width: int) -> np.ndarray:
    """Pieces of whole nodes."""
    parts = np.arange(width // 16, dtype=np.int64)[:, None]
    return np.where(ids == 0, 0, ids * 4 + parts)


def apply(graph: Graph, mask: np.ndarray, op: str, kind: str, values: list, pieces: list) -> Pieces:
    """A float operation on every active thread that holds a symbolic operand."""
    if all(piece is None for piece in pieces):
        return None
    ids = [graph.ids(p, v, kind, mask) for p, v in zip(pieces, values, strict=True)]
    out = np.zeros(mask.shape, np.int64)
    symbolic = np.flatnonzero(np.logical_or.reduce([column != 0 for column in ids]))
    rows = [column[symbolic].tolist() for column in ids]
    bits = [value[symbolic].tolist() for value in values]
    made = []
    for args, raw in zip(zip(*rows, strict=True), zip(*bits, strict=True), strict=True):
        if 0 in args:
            pairs = zip(args, raw, strict=True)
            args = tuple(arg or graph.constant(kind, number) for arg, number in pairs)
        made.append(graph.operation(op, kind, args))
    out[symbolic] = made
    return spread(out, WIDTH[kind])


def convert(
    graph: Graph, mask: np.ndarray, source: str, kind: str, value: np.ndarray, pieces: Pieces
) -> Pieces:
    """Float to float."""
    if pieces is None:
        return None
    ids = graph.ids(pieces, value, source, mask)
    rule = graph.widen if WIDTH[kind] > WIDTH[source] else graph.narrow
    out = np.zeros(mask.shape, np.int64)
    for at in np.flatnonzero(ids):
        out[at] = rule(source, kind, int(ids[at]))
    return spread(out, WIDTH[kind])


def opaque(graph: Graph, mask: np.ndarray, op: str, width: int, pieces: list[Pieces]) -> Pieces:
    """S2's fallback, as a whole node of `width` bits."""
    present = [p for p in pieces if p is not None]
    if not present:
        return None
    rows = np.concatenate(present)
    out = np.zeros(mask.shape, np.int64)
    for at in np.flatnonzero(mask & (rows != 0).any(0)):
        out[at] = graph.opaque(op, max(width, 16), tuple(int(p) for p in rows[:, at]))
    return spread(out, max(width, 16))


def whole(pieces: Pieces, width: int, threads: int) -> np.ndarray:
    """Pieces as an array, zeros where nothing is symbolic."""
    return np.zeros((max(width // 16, 1), threads), np.int64) if pieces is None else pieces


def halves(value: np.ndarray, width: int) -> np.ndarray:
    """The 16-bit halves of a value, low first: shape (width / 16, threads)."""
    shifts = np.arange(width // 16, dtype=np.uint64)[:, None] * np.uint64(16)
    return ((value.astype(np.uint64) >> shifts) & np.uint64(0xFFFF)).astype(UNSIGNED[16])


@dataclass(frozen=True)
class Tree:
    """The verdict on all symbolic outputs: whether each is canonical, and a digest of them all."""

    canonical: bool
    digest: str
    why: str = ""

    def __iter__(self):
        return iter((self.canonical, self.digest))


def _levels(graph: Graph, root: int) -> list[int] | str:
    """The leaf expressions of a perfect tree of one addition, lower first; or why it is none."""
    level, kind = [root], graph.nodes[root][:2]
    if kind[0] != "add":
        return [root]
    while any(graph.nodes[node][:2] == kind for node in level):
        below: list[int] = []
        for node in level:
            entry = graph.nodes[node]
            if entry[:2] == kind:
                below.extend(sorted(entry[2:], key=graph.first.__getitem__))
            elif entry[0] == "const" and entry[2] & (1 << (WIDTH[entry[1]] - 1)) - 1 == 0:
                below.extend((node, node))  # an all-padding subtree: a sum of zeros
            else:
                return f"a leaf at depth {len(level).bit_length() - 1} above others"
        level = below
    return level


def _template(graph: Graph, node: int, places: list[int]) -> tuple:
    """A leaf expression with its coordinates blanked; they are appended to `places`."""
    entry = graph.nodes[node]
    if entry[0] == "leaf":
        places.append(entry[2])
        return ("leaf", entry[1])
    if entry[0] in ("const", "opaque"):
        return entry
    children = sorted(entry[2:], key=graph.first.__getitem__)
    order = children if entry[0] in _COMMUTATIVE[:4] else entry[2:]
    return (*entry[:2], *(_template(graph, child, places) for child in order))


def judge(graph: Graph, root: int, extent: int | None) -> str:
    """Why the tree at `root` is not canonical, or nothing."""
    leaves = _levels(graph, root)
    if isinstance(leaves, str):
        return leaves
    if extent is not None and len(leaves) != extent:
        return f"{len(leaves)} leaves, not {extent}"
    live = [leaf for leaf in leaves if graph.first[leaf] != NO_LEAF]
    if leaves[: len(live)] != live:
        return "padding between live leaves"
    steps, before, shape = None, None, None
    for number, leaf in enumerate(live):
        places: list[int] = []
        template = _template(graph, leaf, places)
        if shape not in (None, template):
            return f"leaf {number} is computed differently from leaf 0"
        if before is not None:
            step = [b - a for a, b in zip(before, places, strict=True)]
            if steps not in (None, step) or any(s < 0 for s in step) or not any(step):
                return f"leaf {number} breaks the order: step {step} after {steps}"
            steps = step
        before, shape = places, template
    return ""


def digests(graph: Graph, roots: list[int]) -> dict[int, bytes]:
    """A structural digest of every node below `roots`, blind to commuted operands."""
    reach, stack = set(), list(roots)
    while stack:
        node = stack.pop()
        if node not in reach:
            reach.add(node)
            stack.extend(_children(graph.nodes[node]))
    out: dict[int, bytes] = {}
    for node in sorted(reach):  # children are older than their parents
        entry = graph.nodes[node]
        if entry[0] in ("leaf", "const"):
            parts = [repr(entry).encode()]
        else:
            parts = [out[child] for child in _children(entry)]
            if entry[0] in _COMMUTATIVE:
                parts[:2] = sorted(parts[:2])
            parts = [repr(entry[:2]).encode(), *parts]
            if entry[0] == "opaque":
                parts += [bytes([piece & 3]) for piece in entry[2:]]
        out[node] = hashlib.blake2b(b"|".join(parts), digest_size=16).digest()
    return out


def _children(entry: tuple) -> list[int]:
    if entry[0] in ("leaf", "const", ()):
        return []
    if entry[0] == "opaque":
        return [piece >> 2 for piece in entry[2:] if piece]
    return list(entry[2:])


def verdict(graph: Graph, outputs: list[tuple[int, int, int]], extent: int | None) -> Tree:
    """Judges outputs given as (buffer, byte offset, node)."""
    if not outputs:
        return Tree(False, "", "no symbolic output")
    why = ""
    for buffer, offset, node in outputs:
        fault = judge(graph, node, extent)
        if fault:
            why = f"output {buffer} at byte {offset}: {fault}"
            break
    table = digests(graph, [node for _, _, node in outputs])
    total = hashlib.blake2b(digest_size=16)
    for buffer, offset, node in outputs:
        total.update(f"{buffer} {offset} ".encode() + table[node])
    return Tree(not why, total.hexdigest(), why)
