"""Shared by all Python tests: a compilation cache of their own, and no warnings about fusion."""

import os
import tempfile

_cache = tempfile.TemporaryDirectory(prefix="bitstable-tests-")


def pytest_configure(config):
    # Before anything imports Triton. A test that looks at caching sets another folder itself.
    os.environ["TRITON_CACHE_DIR"] = _cache.name
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    os.environ.pop("TRITON_STRICT_REDUCTION_ORDERING", None)
    os.environ.pop("TRITON_BITSTABLE_VERIFY", None)
    os.environ.pop("TRITON_BITSTABLE_EMULATE", None)


def pytest_report_header(config):
    import triton

    return f"triton {triton.__version__} from {os.path.dirname(triton.__file__)}"
