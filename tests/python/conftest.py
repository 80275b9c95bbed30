"""Shared by all Python tests: a compilation cache of their own, and no warnings about fusion."""

import os
import tempfile

_cache = tempfile.TemporaryDirectory(prefix="bitstable-tests-")
# What would change the code that is tested, or what is said about it.
_NOT_INHERITED = (
    "TRITON_STRICT_REDUCTION_ORDERING",
    "TRITON_BITSTABLE_EMULATE",
    "TRITON_BITSTABLE_REDUCE_LAYOUT",
    "TRITON_BITSTABLE_REMARKS",
    "TRITON_BITSTABLE_VERIFY",
)


def pytest_configure(config):
    # Before anything imports Triton. A test that looks at caching sets another folder itself.
    os.environ["TRITON_CACHE_DIR"] = _cache.name
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    for name in _NOT_INHERITED:
        os.environ.pop(name, None)


def pytest_report_header(config):
    import triton

    return f"triton {triton.__version__} from {os.path.dirname(triton.__file__)}"
