"""Builds the wheel: Triton's own wheel from PyPI, patched, with our library inside.

Standard library only, so that it runs on a bare Python 3.11. One module, one job: `system` (what
the machine must have), `base` (the wheel we start from), `cargo` (the native library), `patches`
(strict application), `archive` (zip entries, copied raw), `assemble` (all of them into one wheel),
`environment` (the virtualenv), `progress` (what the user sees), `cli` (the order of the steps).
"""
