"""PTX text to instructions. Strict: what is not known here is an error, with its line.

Debug sections behind the entry function are the only text that is skipped, and `.loc`, `.file` and
labels no branch needs the only statements without effect.
"""

import re
from dataclasses import dataclass, field

from .errors import PtxError, UnknownPtx


@dataclass(frozen=True)
class Reg:
    """A virtual or special register, by its full name."""

    name: str


@dataclass(frozen=True)
class Imm:
    """An immediate: an integer, or the bits of a float of `width` bits (0 for an integer)."""

    value: int
    width: int = 0


@dataclass(frozen=True)
class Sym:
    """A label, parameter or variable name."""

    name: str


@dataclass(frozen=True)
class Vec:
    """`{a, b, …}`."""

    items: tuple


@dataclass(frozen=True)
class Pair:
    """`p|q`: two destinations."""

    first: Reg
    second: Reg


@dataclass(frozen=True)
class Addr:
    """`[base + offset]`."""

    base: Reg | Sym | Imm
    offset: int


Operand = Reg | Imm | Sym | Vec | Pair | Addr


def registers(operand: "Operand | tuple") -> list[Reg]:
    """All registers an operand names."""
    if isinstance(operand, Reg):
        return [operand]
    if isinstance(operand, Vec):
        return [reg for item in operand.items for reg in registers(item)]
    if isinstance(operand, Pair):
        return [operand.first, operand.second]
    return registers(operand.base) if isinstance(operand, Addr) else []


@dataclass(frozen=True)
class Inst:
    """One instruction: `@[!]guard op.modifiers operands`."""

    line: int
    text: str
    guard: str | None
    negated: bool
    op: tuple[str, ...]
    operands: tuple[Operand, ...]

    def unknown(self, what: str) -> UnknownPtx:
        """The error for a form of this instruction that is not known."""
        return UnknownPtx(what, self.line, self.text)


@dataclass
class Program:
    """One entry function."""

    name: str = ""
    target: str = ""
    threads: int = 0
    params: list[tuple[str, int]] = field(default_factory=list)
    registers: dict[str, int] = field(default_factory=dict)
    insts: list[Inst] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


_TYPE_BITS = {"pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16,
              "b32": 32, "u32": 32, "s32": 32, "f32": 32, "b64": 64, "u64": 64, "s64": 64,
              "f64": 64}  # fmt: skip
_PARAM = re.compile(r"\.param \.(\w+)(?: \.ptr(?: \.\w+)?(?: \.align \d+)?)? (\w+)")
_REG = re.compile(r"\.reg\s+\.(\w+)\s+(.+)")
_IDENT = r"[%$]?[A-Za-z_$][\w$]*(?:\.[xyz])?"
_INT = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]+|\d+)U?")
_HEADER = re.compile(
    r"\.version \d+\.\d+|\.address_size 64|\.extern \.shared \.align \d+ \.b8 global_smem\[\]"
)


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return parts


class _Body:
    """Reads the statements of the entry function's body."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.scopes: list[dict[str, str]] = [{}]
        self.cache: dict[str, Operand] = {}
        self.blocks = 0

    def resolve(self, name: str) -> str:
        """The unique name of a register that an inner block may have declared."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def declare(self, kind: str, names: str) -> None:
        if kind not in _TYPE_BITS or kind in ("b8", "u8", "s8"):
            raise PtxError(f"register type {kind} is not known")
        for name in _split(names):
            ranged = re.fullmatch(r"(%[A-Za-z_]+)<(\d+)>", name)
            if ranged:
                for number in range(int(ranged[2])):
                    self.program.registers[f"{ranged[1]}{number}"] = _TYPE_BITS[kind]
                continue
            if not re.fullmatch(_IDENT, name):
                raise PtxError(f"register name {name} is not understood")
            unique = f"{name}@{self.blocks}" if len(self.scopes) > 1 else name
            self.scopes[-1][name] = unique
            self.program.registers[unique] = _TYPE_BITS[kind]

    def operand(self, text: str) -> Operand:
        if len(self.scopes) > 1:
            return self._operand(text)
        if text not in self.cache:
            self.cache[text] = self._operand(text)
        return self.cache[text]

    def _operand(self, text: str) -> Operand:
        if text.startswith("{") and text.endswith("}"):
            return Vec(tuple(self.operand(part) for part in _split(text[1:-1])))
        if text.startswith("[") and text.endswith("]"):
            return self._address(text[1:-1].strip())
        number = _INT.fullmatch(text)
        if number:
            return Imm(int(number[1] + number[2], 0))
        float_bits = re.fullmatch(r"0([fFdD])([0-9a-fA-F]+)", text)
        if float_bits:
            return Imm(int(float_bits[2], 16), 32 if float_bits[1] in "fF" else 64)
        if "|" in text:
            first, second = (self.operand(part.strip()) for part in text.split("|"))
            if isinstance(first, Reg) and isinstance(second, Reg):
                return Pair(first, second)
        elif re.fullmatch(_IDENT, text):
            name = self.resolve(text)
            known = name.startswith("%") or name in self.program.registers
            return Reg(name) if known else Sym(name)
        raise PtxError(f"operand {text!r} is not understood")

    def _address(self, text: str) -> Addr:
        parts = re.fullmatch(rf"({_IDENT}|\d+)\s*(?:([+-])\s*(\d+))?", text)
        if not parts:
            raise PtxError(f"address [{text}] is not understood")
        base = self.operand(parts[1])
        if isinstance(base, (Reg, Sym, Imm)):
            return Addr(base, int((parts[2] or "+") + (parts[3] or "0")))
        raise PtxError(f"address [{text}] is not understood")

    def statement(self, line: int, text: str) -> None:
        if text.startswith("."):
            if text.startswith((".loc ", ".loc\t")) or text == '.pragma "nounroll"':
                return
            register = _REG.fullmatch(text)
            if not register:
                raise UnknownPtx("directive is not known")
            self.declare(register[1], register[2])
            return
        parts = re.fullmatch(r"(?:@(!?)([%$\w]+)\s+)?([a-z][\w.:]*)\s*(.*)", text, re.S)
        if not parts:
            raise UnknownPtx("statement is not understood")
        guard = self.resolve(parts[2]) if parts[2] else None
        operands = tuple(self.operand(part) for part in _split(parts[4])) if parts[4] else ()
        self.program.insts.append(
            Inst(line, text, guard, parts[1] == "!", tuple(parts[3].split(".")), operands)
        )

    def brace(self, char: str) -> bool:
        """Opens or closes a scope; false once the body is closed."""
        if char == "{":
            self.blocks += 1
            self.scopes.append({})
        else:
            self.scopes.pop()
        return bool(self.scopes)


def _header(program: Program, text: str) -> None:
    text = " ".join(text.split())
    target = re.fullmatch(r"\.target (sm_\d+a?)", text)
    entry = re.fullmatch(r"\.visible \.entry (\w+)\((.*)\)((?: \.reqntid \d+)?)", text)
    if target:
        program.target = target[1]
    elif entry:
        if program.name:
            raise UnknownPtx("more than one entry function")
        program.name = entry[1]
        for param in _split(entry[2].strip()):
            parts = _PARAM.fullmatch(param)
            if not parts or parts[1] not in _TYPE_BITS:
                raise UnknownPtx(f"parameter {param!r} is not understood")
            program.params.append((parts[2], _TYPE_BITS[parts[1]]))
        if not entry[3]:
            raise UnknownPtx("an entry without .reqntid")
        program.threads = int(entry[3].split()[1])
    elif not _HEADER.fullmatch(text):
        raise UnknownPtx("directive is not known")


def _statements(lines: list[str]):
    """Yields (line, kind, text) with kind "stmt", "label", "brace" or "line" (outside a body)."""
    pending, start = "", 0
    for number, raw in enumerate(lines, 1):
        text = raw.partition("//")[0].strip()
        while text:
            if not pending:
                start = number
                if text[0] in "{}":
                    yield number, "brace", text[0]
                    text = text[1:].strip()
                    continue
                label = re.match(r"(\$?[\w$]+):\s*", text)
                if label:
                    yield number, "label", label[1]
                    text = text[label.end() :]
                    continue
                if text.startswith((".loc", ".file")):
                    yield number, "stmt", text
                    break
            head, semicolon, rest = text.partition(";")
            pending += (" " if pending else "") + head.strip()
            if semicolon:
                yield start, "stmt", pending
                pending = ""
            text = rest.strip()
    if pending:
        raise UnknownPtx("unfinished statement", start, pending)


def _head(lines: list[str], program: Program) -> int:
    """Reads up to the body's brace; the index of the line that opens it."""
    pending, start = "", 0
    for number, raw in enumerate(lines, 1):
        text = raw.partition("//")[0].strip()
        if text.startswith("{") and program_ready(pending):
            _at(start, pending, lambda text=pending: _header(program, text))
            return number - 1
        if not text:
            continue
        start = start if pending else number
        pending += " " + text
        if text.endswith(";") or re.match(r"\s*\.(version|target|address_size)\b", pending):
            _at(start, pending, lambda text=pending: _header(program, text.rstrip(";")))
            pending = ""
    raise UnknownPtx("no entry function")


def program_ready(pending: str) -> bool:
    """Whether the text before a brace is an entry's signature."""
    return ".entry" in pending


def _at(line: int, text: str, action) -> None:
    """Runs `action`; gives an error without a line this one."""
    try:
        action()
    except PtxError as error:
        if error.line:
            raise
        raise type(error)(error.message, line, text) from None


def _tail(lines: list[str], first: int) -> None:
    """Behind the body only debug sections may stand."""
    in_section = False
    for number, raw in enumerate(lines[first:], first + 1):
        text = raw.partition("//")[0].strip()
        if in_section or not text:
            in_section = in_section and not text.endswith("}")
        elif text.startswith(".section"):
            in_section = not text.endswith("}")
        elif not text.startswith(".file"):
            raise UnknownPtx("text behind the entry function", number, text)


def parse(text: str) -> Program:
    """Parses one PTX module with one entry function."""
    lines, program = text.splitlines(), Program()
    opened = _head(lines, program)
    body = _Body(program)
    first = True
    for number, kind, piece in _statements(lines[opened:]):
        line = number + opened
        if first:
            first = False
        elif kind == "label":
            program.labels[piece] = len(program.insts)
        elif kind == "brace":
            if not body.brace(piece):
                _tail(lines, line)
                return program
        else:
            _at(line, piece, lambda line=line, piece=piece: body.statement(line, piece))
    raise UnknownPtx("the entry function is not closed")
