"""zarr-python's ``zarr.registry``."""

from __future__ import annotations

from typing import Any

import tessarr.registry as _ours


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)
