"""`skops.io`, imported without torch and dask.

skops imports every package of scikit-learn, among them adapters that import torch and dask if they are installed, which takes seconds in
every process that loads a model. The adapters are made unavailable for the duration of the import.
"""

from __future__ import annotations

import sys

ADAPTERS = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy"))

_absent = [name for name in ADAPTERS if name not in sys.modules]
try:
    for _name in _absent:
        sys.modules[_name] = None  # type: ignore[assignment]
    import skops.io as skops_io
finally:
    for _name in _absent:
        del sys.modules[_name]

__all__ = ["skops_io"]
