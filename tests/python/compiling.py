"""Compiling without a GPU: kernels to TTIR, to TTGIR, or all the way, for any target."""

import re

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

SM80 = GPUTarget("cuda", 80, 32)
SM90 = GPUTarget("cuda", 90, 32)
SM100 = GPUTarget("cuda", 100, 32)
GFX942 = GPUTarget("hip", "gfx942", 64)
GFX1201 = GPUTarget("hip", "gfx1201", 32)
TARGETS = (SM80, SM90, SM100, GFX942, GFX1201)
VENDORS = (SM90, GFX942)

SHIELD = "bitstable.pin"
ORDER = 'tt.order = "inner_tree"'


def name_of(target):
    return f"{target.backend}:{target.arch}"


def source(kernel, pointers="x:fp32 out:fp32", aligned=True, **constants):
    """An `ASTSource`; `pointers` lists the arguments that are not constants as `name:type`."""
    signature = {name: "constexpr" for name in constants}
    for argument in pointers.split():
        name, ty = argument.split(":")
        signature[name] = ty if ty.startswith("i") else f"*{ty}"
    ordered = {name: signature[name] for name in kernel.arg_names}
    divisible = [["tt.divisibility", 16]]
    attributes = {(at,): divisible for at, ty in enumerate(ordered.values()) if ty[0] == "*"}
    return ASTSource(kernel, ordered, constants, attributes if aligned else {})


def compile(kernel, target, pointers="x:fp32 out:fp32", options=None, **constants):
    """Compile to machine code."""
    return triton.compile(
        source(kernel, pointers, **constants),
        target=target,
        options={"num_warps": 4} | (options or {}),
    )


class Pipeline:
    """One compilation, stage by stage, as `triton.compile` runs them but without our stages."""

    def __init__(self, kernel, target, pointers="x:fp32 out:fp32", options=None, **constants):
        self.backend = make_backend(target)
        self.options = self.backend.parse_options({"num_warps": 4} | (options or {}))
        self.context = ir.context()
        ir.load_dialects(self.context)
        self.backend.load_dialects(self.context)
        src = source(kernel, pointers, **constants)
        codegen = self.backend.get_codegen_implementation(self.options)
        modules = self.backend.get_module_map()
        self.module = src.make_ir(target, self.options, codegen, modules, self.context)
        self.stages = {}
        self.backend.add_stages(self.stages, self.options, src.language)
        self.metadata = {}

    def run(self, *stages):
        for stage in stages:
            self.module = self.stages[stage](self.module, self.metadata)
        return self

    @property
    def text(self):
        return self.module.str_nodebug()


def front_end(kernel, target=SM90, **arguments):
    """The TTIR that the front end makes, before any pass."""
    return Pipeline(kernel, target, **arguments).text


def pinned(text):
    """How many reductions of a module carry an order."""
    return text.count(ORDER)


def shields(text):
    """How many shields a module holds."""
    return len(re.findall(rf'tt\.extern_elementwise.*symbol = "{re.escape(SHIELD)}"', text))


def messages(error):
    """The messages of an exception and of all its causes: Triton wraps errors call by call."""
    found = []
    while error is not None:
        found.append(str(error))
        error = error.__cause__
    return "\n".join(found)
