"""`same_bits`: the autotuner's pruner, and `proved_same` for tuners of one's own.

# Idea
Triton calls a pruner with configurations and arguments, but not with the kernel. The wheel's
autotuner therefore lets a pruner that has `for_autotuner` bind itself to it, once, when it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triton import knobs
from triton.bitstable.tuning.compiling import Candidate, compile_all, innermost
from triton.bitstable.tuning.errors import SameBitsError
from triton.bitstable.tuning.facts import Facts, fixed_by, grid_of
from triton.bitstable.tuning.selection import Assembly, Selection, Subject, select
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner, Config
from triton.runtime.cache import get_override_manager
from triton.runtime.jit import JITFunction

Prune = Callable[..., Sequence[Config]]
_GRIDS = ("any", "launch")


def same_bits(
    reference: Config | Any | None = None, *, grid: str = "any", after: Prune | None = None
) -> SameBits:
    """An `early_config_prune` that keeps what is proved to return the reference's bits.

    `reference` is a `triton.Config`, in the autotuner's list or not; a compiled kernel; or nothing,
    for the first configuration. `grid="launch"` says that the grid follows from the autotuner's
    `key`, so that the one of the launch that tunes is a fact; a proof holds for `"any"` grid
    otherwise. `after` is a pruner to run first.
    """
    if grid not in _GRIDS:
        raise ValueError(f"same_bits: grid must be one of {_GRIDS}, not {grid!r}")
    known = reference is None or isinstance(reference, Config) or hasattr(reference, "asm")
    if not known:
        raise TypeError(
            "same_bits: reference must be None, a triton.Config or a compiled kernel, not "
            f"{type(reference).__name__}"
        )
    return SameBits(reference, grid, after)


@dataclass
class SameBits:
    """What `same_bits` returns; bound to an autotuner, it prunes."""

    reference: Any
    grid: str
    after: Prune | None
    autotuner: Autotuner | None = field(default=None, repr=False)
    #: What was kept last, and what was decided of each configuration, and why.
    kept: list[Config] = field(default_factory=list, repr=False)
    selection: Selection | None = field(default=None, repr=False)

    def for_autotuner(self, autotuner: Autotuner) -> SameBits:
        """One for this autotuner alone; Triton calls it."""
        after = self.after
        if hasattr(after, "for_autotuner"):
            after = after.for_autotuner(autotuner)
        return SameBits(self.reference, self.grid, after, autotuner)

    def __call__(
        self, configs: Sequence[Config], named_args: Mapping[str, Any], **kwargs: Any
    ) -> list[Config]:
        """Those of `configs` that may be timed, in their order."""
        if self.autotuner is None:
            raise SameBitsError(
                "it must be the early_config_prune itself, to know the kernel; another pruner "
                "goes into same_bits(after=…)"
            )
        if self.after is not None:
            configs = self.after(configs, named_args, **kwargs)
        configs = list(configs)
        if not configs:
            raise SameBitsError("there are no configurations to choose from")
        if isinstance(self.reference, Config) and self.reference not in configs:
            configs.insert(0, self.reference)
        function, _ = innermost(self.autotuner.fn)
        if knobs.runtime.interpret and not isinstance(function, JITFunction):
            return self._interpreted(configs)
        _refuse_other_targets()
        return self._compiled(configs, dict(named_args), kwargs)

    def _interpreted(self, configs: list[Config]) -> list[Config]:
        if isinstance(self.reference, Config):
            return [configs[configs.index(self.reference)]]
        if self.reference is None:
            return configs[:1]
        raise SameBitsError("a compiled reference has no counterpart in the interpreter")

    def _compiled(
        self, configs: list[Config], named: dict[str, Any], options: dict[str, Any]
    ) -> list[Config]:
        candidates = compile_all(self.autotuner, configs, named, options)
        subjects = [self._subject(each, options.get("grid")) for each in candidates]
        if self.reference is None or isinstance(self.reference, Config):
            at = 0 if self.reference is None else configs.index(self.reference)
            reference = subjects[at]
        else:
            reference = self._compiled_reference(candidates, subjects)
        name = self.autotuner.base_fn.__name__
        if reference.failure is not None:
            raise SameBitsError(
                f"{name}: the reference, {reference.label}: {reference.failure}; name another one "
                "with reference="
            )
        shown = knobs.autotuning.print
        self.selection = select(name, reference, subjects, explain=shown)
        if shown:
            print(self.selection)
        if not self.selection.kept:
            explained = self.selection if shown else select(name, reference, subjects, explain=True)
            raise SameBitsError(
                f"{name}: no configuration is proved to return the reference's bits\n{explained}"
            )
        self.kept = [configs[number] for number in self.selection.kept]
        return list(self.kept)

    def _subject(self, candidate: Candidate, grid: Any) -> Subject:
        label = str(candidate.config)
        if candidate.failure is not None:
            return Subject(label, failure=f"does not compile: {candidate.failure}")
        fixed = {*fixed_by(self.autotuner.keys, candidate.bound), *candidate.chosen}
        return subject(
            candidate.kernel,
            label,
            candidate.bound,
            fixed,
            grid_of(grid, candidate.bound),
            self.grid == "launch" and grid is not None,
        )

    def _compiled_reference(
        self, candidates: Sequence[Candidate], subjects: Sequence[Subject]
    ) -> Subject:
        """The caller's kernel, launched as the first configuration that compiles."""
        usable = [number for number, each in enumerate(subjects) if each.failure is None]
        first = usable[0] if usable else 0
        fixed = fixed_by(self.autotuner.keys, candidates[first].bound)
        like = subjects[first]
        return subject(
            self.reference,
            f"a compiled {getattr(self.reference, 'name', 'kernel')}",
            candidates[first].bound,
            fixed,
            like.grid,
            like.grid_known,
        )


def _refuse_other_targets() -> None:
    target = driver.active.get_current_target()
    if target.backend != "cuda":
        raise SameBitsError(
            f"it compares PTX, and kernels for {target.backend}:{target.arch} have none; "
            "leave early_config_prune out there"
        )


def subject(
    kernel: Any,
    label: str,
    bound: Mapping[str, Any],
    fixed: set[str],
    grid: Any = None,
    grid_known: bool = False,
) -> Subject:
    """A compiled kernel, as it is compared; see `Subject`."""
    if not hasattr(kernel, "asm"):
        return Subject(label, failure=f"a {type(kernel).__name__} keeps no PTX")
    names = getattr(kernel.src, "signature", {})
    if not all(isinstance(name, str) for name in names):
        return Subject(label, failure="its parameters have no names: it was compiled from a file")
    if failure := _unreadable(kernel):
        return Subject(label, failure=failure)
    facts = Facts.of(names, bound, fixed)
    return Subject(label, kernel.asm["ptx"], facts, _assembly(kernel.metadata), grid, grid_known)


def _assembly(metadata: Any) -> Assembly:
    options = getattr(metadata, "ptx_options", None) or ""
    contracts = metadata.enable_fp_fusion or "fmad" in options
    return Assembly(f"{metadata.target.backend}:{metadata.target.arch}", contracts, options)


def _unreadable(kernel: Any) -> str | None:
    """Why a kernel's PTX is missing, or is not what runs."""
    if "ptx" not in kernel.asm:
        if knobs.compilation.store_binary_only:
            return "TRITON_STORE_BINARY_ONLY keeps no PTX in Triton's cache"
        return f"it has no PTX, but {', '.join(sorted(kernel.asm))}"
    override = getattr(kernel.metadata, "ir_override", None) or ""
    if knobs.compilation.override:
        override = get_override_manager(kernel.src.hash()).get_file(
            f"{kernel.src.name[:150]}.cubin"
        )
    if override and override.endswith(".cubin"):
        return f"its machine code is {override}, not that of its PTX"
    return None


def proved_same(
    kernels: Sequence[Any], reference: int = 0, *, grids: Sequence[Any] | None = None
) -> list[int]:
    """Numbers of the compiled kernels that are proved to return the bits of `kernels[reference]`.

    For tuners that compile kernels themselves. The proof holds for every grid, if only both are
    launched on the same; kernels whose entries in `grids` differ are not compared.
    """
    if grids is not None and len(grids) != len(kernels):
        raise ValueError(f"proved_same: {len(kernels)} kernels, but {len(grids)} grids")
    grids = [None] * len(kernels) if grids is None else list(grids)
    subjects = [
        subject(each, f"kernel {number}", {}, set(), grids[number])
        for number, each in enumerate(kernels)
    ]
    if subjects[reference].failure is not None:
        return [reference]
    return select("kernels", subjects[reference], subjects).kept
