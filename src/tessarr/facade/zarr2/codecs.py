"""zarr-python 2's ``zarr.codecs``: the codecs of numcodecs."""

from typing import Any

import tessarr.codecs


def __getattr__(name: str) -> Any:
    from tessarr.common.numcodecs import numcodecs

    return getattr(numcodecs, name, None) or getattr(tessarr.codecs, name)
