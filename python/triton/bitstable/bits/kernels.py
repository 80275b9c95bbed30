"""Which kernel is swept: where it is found again in another process, and what it wants.

# Idea
A worker process imports the kernel by its file and name, so nothing of it is pickled. An autotuner
is taken off the kernel, since the sweep chooses configurations; heuristics stay.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from triton.bitstable.bits.arguments import Argument
from triton.bitstable.bits.configurations import Configuration
from triton.bitstable.bits.errors import UsageError
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction


@dataclass(frozen=True)
class Place:
    """Where a kernel is defined. `module` is its name where it was first imported."""

    file: str
    name: str
    module: str | None = None

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read `FILE.py:KERNEL`."""
        file, colon, name = text.rpartition(":")
        if not colon or not file or not name.isidentifier():
            raise UsageError(f"{text!r}: write FILE.py:KERNEL")
        if not Path(file).is_file():
            raise UsageError(f"{file}: no such file")
        return cls(str(Path(file).resolve()), name)

    @classmethod
    def of(cls, kernel: Any) -> Place | None:
        """Of a kernel that other processes can find; none for one made inside a function."""
        function = _innermost(kernel).fn
        members = vars(sys.modules.get(function.__module__, object))
        # A decorator applied by hand has another name than the function.
        names = [name for name, member in members.items() if member is kernel]
        if not names:
            return None
        return cls(function.__code__.co_filename, names[0], function.__module__)

    def load(self) -> Any:
        """The kernel, from its module."""
        module = self._module()
        kernel = getattr(module, self.name, None)
        if not isinstance(kernel, (JITFunction, Autotuner, Heuristics)):
            found = [n for n, v in vars(module).items() if isinstance(v, JITFunction)]
            raise UsageError(
                f"{self.file}: no kernel {self.name}; its kernels are {', '.join(found) or 'none'}"
            )
        return kernel

    def _module(self) -> ModuleType:
        if self.module and self.module != "__main__":
            found = importlib.import_module(self.module)
            if getattr(found, "__file__", None) == self.file:
                return found
        folder = str(Path(self.file).parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        name = Path(self.file).stem
        known = sys.modules.get(name)
        if known is not None and getattr(known, "__file__", None) == self.file:
            return known
        if known is not None:  # a module of another file has this name
            name = f"bitstable_swept_{name}"
        spec = importlib.util.spec_from_file_location(name, self.file)
        if spec is None or spec.loader is None:
            raise UsageError(f"{self.file}: not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            raise UsageError(f"{self.file}: {type(error).__name__}: {error}") from error
        return module


def _innermost(kernel: Any) -> JITFunction:
    while isinstance(kernel, (Autotuner, Heuristics)):
        kernel = kernel.fn
    if not isinstance(kernel, JITFunction):
        raise UsageError(f"not a Triton kernel: {kernel!r}")
    return kernel


def untuned(kernel: Any) -> tuple[Any, list[Any] | None]:
    """The kernel without its autotuner, and the autotuner's configurations."""
    if isinstance(kernel, Autotuner):
        inner, _ = untuned(kernel.fn)
        return inner, list(kernel.configs)
    if isinstance(kernel, Heuristics):
        inner, configs = untuned(kernel.fn)
        return Heuristics(inner, kernel.arg_names, kernel.values), configs
    return _innermost(kernel), None


def check(kernel: Any, arguments: list[Argument], configurations: list[Configuration]) -> None:
    """Refuse arguments that the kernel lacks, and lacking ones, before anything is compiled."""
    function = _innermost(kernel)
    computed: set[str] = set()
    while isinstance(kernel, Heuristics):
        computed |= set(kernel.values)
        kernel = kernel.fn
    parameters = inspect.signature(function.fn).parameters
    required = {n for n, p in parameters.items() if p.default is inspect.Parameter.empty}
    given = {argument.name for argument in arguments}
    for constants in {tuple(name for name, _ in each.constants) for each in configurations}:
        if both := given & set(constants):
            raise UsageError(f"both argument and constant: {', '.join(sorted(both))}")
        known = given | set(constants) | computed
        if odd := sorted(known - set(parameters)):
            raise UsageError(
                f"{function.__name__} has no {', '.join(odd)}; it takes {', '.join(parameters)}"
            )
        if missing := [name for name in parameters if name in required - known]:
            constexprs = {function.params[i].name for i in function.constexprs}
            how = [f"--const {n}=…" if n in constexprs else f"{n}=…" for n in missing]
            raise UsageError(f"{function.__name__} also needs {' '.join(how)}")
