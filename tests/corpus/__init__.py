"""The soundness corpus: kernels over matrices of configurations, compiled, run and labelled.

# Idea
The static checker says that two compiled kernels return the same bits; the executor shows what they
return. A corpus holds thousands of compiled configurations with the bytes each was seen to return,
so that every "same" of the checker can be held against what was observed ([`checking`]).

| module | what it has |
|---|---|
| `kernels/` | the Triton kernels, by kind |
| `cases`, `matrices` | which of them, on which arguments, over which configurations |
| `compiling` | Triton's stages to PTX, shared between configurations |
| `running` | PTX on the executor, draw by draw, to a label |
| `building` | the folder: manifests, PTX by content, worker processes |
| `checking` | the gate: labels against the checker's classes |

# Invariants
- **C1** Only configurations of one case are compared: the same kernel on the same arguments.
- **C2** What a corpus holds is a function of the kernels, the seed and Triton's version.

The command is `scripts/bit-corpus`.
"""
