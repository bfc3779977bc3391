"""The native engine is tested where it was built; CI builds it always (`TESSARR_NATIVE=require`)."""

from __future__ import annotations

import pytest

pytest.importorskip("tessarr._native", reason="the Rust module was not built: no Rust toolchain or crate registry")
