"""``import tessarr`` is cheap because of what it does not load. Seconds are measured by `make bench`, not here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tessarr

NEVER = {
    # Optional packages, and the required ones that only the reference engine's codecs use.
    "aiohttp", "boto3", "dask", "fsspec", "google_crc32c", "h5py", "httpx", "lmdb", "ml_dtypes", "msgpack", "netCDF4",
    "numcodecs", "obstore", "pandas", "pcodec", "PIL", "pyproj", "redis", "rich", "s3fs", "starlette", "tensorstore",
    "tifffile", "uvicorn", "xarray", "yaml", "zarr", "zarrs", "zfpy",
    # Heavy parts of the standard library.
    "asyncio", "concurrent.futures", "http", "http.client", "importlib.metadata", "multiprocessing", "sqlite3", "ssl",
    "unittest", "urllib.request", "zipfile",
    # Floors 5 and 6, and the Rust module, whose thread pool starts with it.
    "tessarr.cli", "tessarr.conventions", "tessarr.serve", "tessarr.testing", "tessarr.tools",
    "tessarr._native",
}  # fmt: skip


def modules_after(statements: str) -> set[str]:
    """What a fresh interpreter has loaded after `statements`, beyond what NumPy loads."""
    code = f"import json, sys, numpy; before = set(sys.modules); {statements}; "
    code += "print(json.dumps(sorted(set(sys.modules) - before)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def after_import() -> set[str]:
    return modules_after("import tessarr")


@pytest.mark.parametrize("name", sorted(NEVER))
def test_import_tessarr_does_not_load(name: str, after_import: set[str]) -> None:
    assert "tessarr" in after_import
    assert name not in after_import


def test_import_tessarr_loads_none_of_its_modules(after_import: set[str]) -> None:
    """The first lookup of a name fills the registry, not the import of the package."""
    assert {name for name in after_import if name.startswith("tessarr.")} == set()


def test_import_tessarr_loads_few_modules(after_import: set[str]) -> None:
    """Each module costs about 0.2 ms, so their number is the budget: 40 ms beyond NumPy."""
    assert len(after_import) <= 120, sorted(after_import)


OPENS_ARRAYS = "import tessarr; tessarr.open_array, tessarr.Array"
NOT_TO_OPEN_ARRAYS = {
    "pathlib", "tessarr.codecs.array_to_array", "tessarr.codecs.sharding", "tessarr.core.asynchronous.async_array",
    "tessarr.core.attributes", "tessarr.core.creation.arrays", "tessarr.core.creation.metadata", "tessarr.core.group",
    "tessarr.core.stored.consolidated",
    "tessarr.core.stored.metadata_io", "tessarr.engine.reference", "tessarr.grids.guess",
    "tessarr.indexing.fancy", "tessarr.metadata.public", "tessarr.stores.memory",
}  # fmt: skip


def test_opening_an_array_loads_no_modules_for_groups_creation_or_changes() -> None:
    after = modules_after(OPENS_ARRAYS)
    assert "tessarr.core.array" in after
    assert after & NOT_TO_OPEN_ARRAYS == set()
    assert len(after) <= 101, sorted(after)


def test_opening_loads_no_digests() -> None:
    """They take longer to load than any module of ours; versions and back-offs need them, opening a local array does not."""
    assert {"hashlib", "random"} & modules_after(OPENS_ARRAYS) == set()


def test_every_public_name_is_importable() -> None:
    code = "import tessarr; print(len([getattr(tessarr, name) for name in tessarr.__all__]))"
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) > 10


def test_opening_and_reading_a_local_array_loads_no_event_loop(tmp_path: Path) -> None:
    place, kind = repr(str(tmp_path / "a.zarr")), "shape=4, dtype='i4'"
    after = modules_after(f"import tessarr; tessarr.create_array({place}, {kind})[:] = 1; tessarr.open({place})[:]")
    assert {"asyncio", "ssl", "concurrent.futures"} & after == set()


def test_reading_an_array_in_memory_loads_no_network_stores() -> None:
    after = modules_after("import tessarr; tessarr.create_array({}, shape=4, chunks=2, dtype='i4')[:1]")
    assert "tessarr.engine.native.engine" in after
    assert "tessarr.stores.remote" not in after


def test_reading_a_box_of_a_local_array_loads_nothing_for_other_selections_and_no_exact_numbers(tmp_path: Path) -> None:
    place = str(tmp_path / "a.zarr")
    tessarr.create_array(place, shape=4, dtype="f4")[:] = 1
    after = modules_after(f"import tessarr; tessarr.open_array({place!r}, mode='r')[1:3]")
    assert "tessarr.engine.native.engine" in after
    unused = {"decimal", "fractions", "numpy.typing", "urllib.parse", "tessarr.metadata.reservations"}
    assert after & (NOT_TO_OPEN_ARRAYS | unused) == set()


def test_rechunking_loads_nothing_for_other_kinds_of_plans_and_no_numcodecs(tmp_path: Path) -> None:
    tessarr.create_array(
        tmp_path / "a.zarr", data=[1.0, 2.0], chunks=1, zarr_format=2, compressors={"id": "zlib", "level": 1}
    )
    places = f"{str(tmp_path / 'a.zarr')!r}, {str(tmp_path / 'b.zarr')!r}"
    after = modules_after(f"import tessarr.plan; tessarr.plan.rechunk({places}, chunks=(2,)).run()")
    assert "tessarr.plan.task" in after
    unused = {
        "html", "numcodecs", "tessarr.conventions", "tessarr.plan.kinds.check_manifest", "tessarr.plan.kinds.checking",
        "tessarr.plan.kinds.pyramids", "tessarr.plan.predict", "tessarr.plan.strategies.simulate",
        "tessarr.stores.remote", "tessarr.stores.zip", "tessarr.tools.check", "tessarr.tools.pyramid", "zipfile",
    }  # fmt: skip
    assert after & unused == set()
    assert len([name for name in after if name.startswith("tessarr")]) <= 210
