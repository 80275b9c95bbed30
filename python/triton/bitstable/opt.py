"""`bitstable-opt`: our passes over TTGIR as Triton prints it, from the command line.

Triton's own parser reads the text, the native library runs the pipeline on its generic form, and
Triton parses, verifies and prints the result. Errors of the library stand on stderr as
`file:line:col: error: …`; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triton._C import libtriton
from triton.bitstable import __version__, stages, text
from triton.bitstable.errors import Diagnostic, NativeLibraryError, ReductionOrderError

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
_EPILOG = """
passes:
  pin-reduce      lower every tt.reduce that carries tt.order = "inner_tree" to the canonical tree
  reduce-layout   give their operands a layout that folds cheaply; the bits stay
                  {strategy=auto|renumber|convert|off max-registers=N max-shared=BYTES}
  shield-reduce   hide the operands of such reductions from Triton's optimiser

examples:
  bitstable-opt kernel.ttgir --pass-pipeline=pin-reduce
  bitstable-opt kernel.ttgir --pass-pipeline=pin-reduce --print-plan -o pinned.ttgir
  bitstable-opt kernel.ttgir --pass-pipeline=reduce-layout --remarks -o cheaper.ttgir
  bitstable-opt - --pass-pipeline=shield-reduce,pin-reduce < kernel.ttgir
  bitstable-opt cases.mlir --pass-pipeline=pin-reduce -split-input-file | FileCheck cases.mlir

A module to run it on: compile with TRITON_KERNEL_DUMP=1, or take kernel.asm["ttgir"].
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bitstable-opt",
        description="Run bitstable's passes over TTGIR (or TTIR) text, as mlir-opt does.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", help="the module to read; - for standard input")
    add("--pass-pipeline", default="", metavar="PASSES", help="passes, comma separated, in order")
    add(
        "-split-input-file",
        "--split-input-file",
        action="store_true",
        help="read modules separated by lines that begin with // -----",
    )
    add("--print-plan", action="store_true", help="print each reduction's plan as comments")
    add("--remarks", action="store_true", help="say on stderr what reduce-layout did, and why")
    add("--json", metavar="FILE", help="write the report as JSON; - for standard output")
    add("--generic", action="store_true", help="print the generic form, with locations")
    add("--print-debuginfo", action="store_true", help="print locations")
    add("-o", dest="output", default="-", metavar="FILE", help="where to write; standard output")
    add("--version", action="version", version=f"bitstable {__version__}")
    return parser


@dataclass(frozen=True)
class _Piece:
    """One module's text, with blank lines before it so that its lines keep their numbers."""

    text: str
    first_line: int


def _pieces(source: str, split: bool) -> Iterator[_Piece]:
    if not split:
        yield _Piece(source, 1)
        return
    position = 0
    for end in [*(match.end() for match in _SPLIT.finditer(source)), len(source)]:
        chunk = _SPLIT.sub("", source[position:end])
        before = source.count("\n", 0, position)
        if chunk.strip():
            yield _Piece("\n" * before + chunk, before + 1)
        position = end


def _context() -> Any:
    context = libtriton.ir.context()
    libtriton.ir.load_dialects(context)
    for vendor in (libtriton.nvidia, libtriton.amd):
        vendor.load_dialects(context)
    return context


def _with_option(pipeline: str, name: str, option: str) -> str:
    """The pipeline, with one more option for each pass called `name`."""
    passes = re.compile(rf"\b{name}\b(?:\{{([^}}]*)\}})?")
    return passes.sub(lambda m: f"{name}{{{m[1] or ''} {option}}}", pipeline)


class _Failure(Exception):
    """One piece failed; the message is for stderr."""


@dataclass
class _Run:
    """One invocation: its options, and the input's name for the user."""

    options: argparse.Namespace
    name: str

    def transform(self, piece: _Piece) -> tuple[str, dict[str, Any]]:
        """Parse, rewrite, print."""
        # Triton reads files only. A piece goes into a file of the same name in another folder, so
        # that Triton's own messages make sense.
        if not self.options.split_input_file and self.options.file != "-":
            return self._transform_file(self.name, piece)
        name = Path(self.name).name
        with tempfile.TemporaryDirectory(prefix="bitstable-opt-") as scratch, chdir(scratch):
            Path(name).write_text(piece.text)
            return self._transform_file(name, piece)

    def _transform_file(self, path: str, piece: _Piece) -> tuple[str, dict[str, Any]]:
        context = _context()
        try:
            module = libtriton.ir.parse_mlir_module(path, context)
        except RuntimeError as error:
            raise _Failure(f"{self.name}:{piece.first_line}:1: error: {error}") from None
        module.context = context
        module, report = self._rewrite(module, path)
        if self.options.remarks:
            said = (Diagnostic.from_json(entry) for entry in report.get("diagnostics", ()))
            for remark in self.rendered(said, path):
                print(remark, file=sys.stderr)
        return self._print(module), report

    def _rewrite(self, module: Any, path: str) -> tuple[Any, dict[str, Any]]:
        report: dict[str, Any] = {"reductions": []}
        if not self.options.pass_pipeline:
            return module, report
        pipeline = self.options.pass_pipeline
        if self.options.remarks:
            pipeline = _with_option(pipeline, "reduce-layout", "remarks=true")
        if self.options.print_plan:
            pipeline = _with_option(pipeline, "pin-reduce", "print-plan=true")
        try:
            return stages.rewrite(module, pipeline)
        except ReductionOrderError as error:
            raise _Failure("\n".join(self.rendered(error.diagnostics, path))) from None

    def rendered(self, diagnostics: Iterable[Diagnostic], path: str) -> list[str]:
        """As text, with the input's own name in place of the scratch file's."""
        own = (replace(d, file=self.name) if d.file == path else d for d in diagnostics)
        return [diagnostic.render() for diagnostic in own]

    def _print(self, module: Any) -> str:
        if self.options.generic:
            return text.print_generic(stages.Scan.of(module).body).decode() + "\n"
        printed = module.str() if self.options.print_debuginfo else module.str_nodebug()
        return printed.rstrip("\n") + "\n"


def _plan_comments(report: dict[str, Any]) -> str:
    lines = []
    for reduction in report["reductions"]:
        place = f"{reduction.get('file')}:{reduction.get('line')}"
        lines.append(f"// axis {reduction['axis']} of {reduction['extent']} at {place}")
        lines += [f"//   {line}" for line in reduction["explained"]]
    return "".join(line + "\n" for line in lines)


def _write(target: str, content: str) -> None:
    if target == "-":
        sys.stdout.write(content)
    else:
        Path(target).write_text(content)


def main(arguments: list[str] | None = None) -> int:
    """Run the tool; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        source = sys.stdin.read() if options.file == "-" else Path(options.file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        print(f"{options.file}: error: {error}", file=sys.stderr)
        return 1
    name = "<stdin>" if options.file == "-" else options.file
    outputs: list[str] = []
    reports: list[dict[str, Any]] = []
    failures = 0
    run = _Run(options, name)
    for piece in _pieces(source, options.split_input_file):
        try:
            printed, report = run.transform(piece)
        except (_Failure, NativeLibraryError) as failure:
            print(failure, file=sys.stderr)
            failures += 1
            continue
        outputs.append((_plan_comments(report) if options.print_plan else "") + printed)
        reports.append(report)
    _write(options.output, "\n// -----\n".join(outputs))
    if options.json:
        merged = {
            key: [entry for report in reports for entry in report.get(key, ())]
            for key in ("reductions", "layouts")
        }
        _write(options.json, json.dumps(merged, indent=2) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
