"""What an array's metadata holds is what its documents can say."""

from __future__ import annotations

import numpy as np
import pytest

import tessarr
from tessarr.errors import ZarrRuntimeWarning

PAYLOAD = np.array([0x7FC00001], "<u4").view("<f4")[0]
COMPLEX = np.array([0xFFC00000, 0x80000000], "<u4").view("<c8")[0]


@pytest.mark.parametrize(("dtype", "fill"), [("<f4", PAYLOAD), ("<f4", -PAYLOAD), ("<c8", COMPLEX)])
def test_a_nan_that_version_2_cannot_state_is_no_fill_value_and_is_stored(dtype: str, fill: np.generic) -> None:
    values: dict[str, bytes] = {}
    with pytest.warns(ZarrRuntimeWarning, match="payload"):
        z = tessarr.create_array(values, shape=(4,), chunks=(2,), dtype=dtype, fill_value=fill, zarr_format=2)
    assert np.asarray(z.fill_value).tobytes() != fill.tobytes()
    z[:2] = fill
    assert z.nchunks_initialized == 1
    again = tessarr.open_array(values)[:]
    assert again[:2].tobytes() == fill.tobytes() * 2
    assert again[2:].tobytes() == np.asarray(z.fill_value).astype(dtype).tobytes() * 2


def test_a_nan_in_a_record_keeps_its_payload_in_version_2() -> None:
    values: dict[str, bytes] = {}
    fill = np.array([(PAYLOAD,)], [("a", "<f4")])[0]
    z = tessarr.create_array(values, shape=(4,), chunks=(2,), dtype=fill.dtype, fill_value=fill, zarr_format=2)
    z[:] = z[:]
    assert z.nchunks_initialized == 0
    assert tessarr.open_array(values)[:].tobytes() == fill.tobytes() * 4
