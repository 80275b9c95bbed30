"""Triton's stages to PTX, without ptxas, shared between configurations.

# Idea
TTIR depends on the kernel, its constants and the target; TTGIR and LLVM IR on the warps and stages
besides; only the last stage reads whether products may be fused. So each stage is remembered by
what it depends on, and a stage that starts from text already seen is not run again.

# Invariants
- **G1** The PTX is that of Triton's own pipeline, but for the folder in its `.file` lines.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.bitstable.stages import install
from triton.compiler import ASTSource, make_backend

from corpus.cases import Case, Configuration, attributes_of, type_of


@dataclass(frozen=True)
class Compiled:
    """PTX, and what a launch of it needs."""

    ptx: str
    entry: str
    threads: int
    shared: int
    scratch: int


class Compiler:
    """Compiles the configurations of one case, in their order."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._llir: tuple[Any, Any] = (None, None)
        self._ptx: dict[tuple[str, bool], tuple[str, str]] = {}
        #: Seconds by stage.
        self.seconds: Counter[str] = Counter()

    def compile(self, configuration: Configuration) -> Compiled:
        """The PTX of one configuration; raises what Triton raises."""
        key = replace(configuration, fp_fusion=False)
        if self._llir[0] != key:
            self._llir = key, self._lower(configuration)
        llir, metadata, backend = self._llir[1]
        known = llir, configuration.fp_fusion
        if known not in self._ptx:
            options = _options(backend, configuration)
            stages: dict[str, Any] = {}
            backend.add_stages(stages, options, self._source(configuration).language)
            self._ptx = {k: v for k, v in self._ptx.items() if k[0] == llir}
            text = self._timed("ptx", lambda: stages["ptx"](llir, metadata))
            self._ptx[known] = text, metadata["name"]
        text, entry = self._ptx[known]
        ptx = re.sub(r'(\.file\s+\d+) "[^"]*/', r'\1 "', text)
        return Compiled(
            ptx,
            entry,
            32 * metadata.get("num_warps", configuration.num_warps),
            metadata["shared"],
            metadata["global_scratch_size"],
        )

    def _lower(self, configuration: Configuration) -> tuple[str, dict[str, Any], Any]:
        backend = make_backend(GPUTarget("cuda", configuration.target, 32))
        options = _options(backend, configuration)
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        source = self._source(configuration)
        stages: dict[str, Any] = {}
        metadata: dict[str, Any] = {"target": backend.target}
        backend.add_stages(stages, options, source.language)
        install(stages)
        module = self._timed("ast", lambda: self._module(source, backend, options, context))
        for name in ("ttir", "ttgir", "llir"):
            module = self._timed(name, lambda: stages[name](module, metadata))  # noqa: B023
        return module, metadata, backend

    def _module(self, source: ASTSource, backend: Any, options: Any, context: Any) -> Any:
        codegen = backend.get_codegen_implementation(options)
        return source.make_ir(backend.target, options, codegen, backend.get_module_map(), context)

    def _source(self, configuration: Configuration) -> ASTSource:
        case, arguments = self.case, {a.name: a for a in self.case.read()}
        constants = {**case.constants, **dict(configuration.constants)}
        signature = {
            name: type_of(arguments[name]) if name in arguments else "constexpr"
            for name in case.kernel.arg_names
        }
        attributes = {
            (at,): told
            for at, name in enumerate(case.kernel.arg_names)
            if name in arguments and (told := attributes_of(arguments[name]))
        }
        return ASTSource(case.kernel, signature, constants, attributes)

    def _timed(self, name: str, work: Any) -> Any:
        began = time.perf_counter()
        try:
            return work()
        finally:
            self.seconds[name] += time.perf_counter() - began


def _options(backend: Any, configuration: Configuration) -> Any:
    return backend.parse_options(
        {
            "num_warps": configuration.num_warps,
            "num_stages": configuration.num_stages,
            "enable_fp_fusion": configuration.fp_fusion,
        }
    )
