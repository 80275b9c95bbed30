"""What a pinned order costs, measured on compiled code: `python benches/cost --help`.

| module | what it has |
|---|---|
| `suite` | the kernels, as data |
| `worker` | compiles and measures one configuration after another, in any Triton |
| `machine` | what a compiled kernel does, and about how long it takes |
| `building` | worker processes, and what they did before |
| `peer` | the published `inner_tree`, in a virtualenv of its own |
| `figures` | ratios, means, losses, and the figures to reach |
| `report`, `plot` | the same for people |
| `command` | the command line |

# Not here
Whether the bits are right (`tests/`), and how long compiling takes (`benches/compile_time.py`).
"""
