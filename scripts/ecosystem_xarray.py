"""Run xarray's own Zarr tests (`ZarrBase` and its subclasses) with the engine and the writer of `tessarr.xarray`.

    python scripts/ecosystem_xarray.py                  # run both, print passed-of-passed and every difference
    python scripts/ecosystem_xarray.py -k DirectoryStore

The tests run twice: with zarr-python, and with this module as a plugin, which replaces xarray's store, engine and `to_zarr`
by tessarr's. zarr-python is not replaced: the tests read the written data with it. xarray's tests assert that
overlapping tasks are refused, which is the option ``safe_chunks="refuse"`` here (`docs/xarray.md`); ``--locks`` measures the
default, which writes them under locks. Needs xarray, zarr, dask, pytest, pytest-asyncio.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = "xarray.tests.test_backends"
CHOSEN = "TestZarr"
REPORT = "TESSARR_XARRAY_REPORT"
TESSARR = "TESSARR_XARRAY_ANSWERS"
EXPLAINED = {
    "test_compressor_encoding": "codecs in encodings are JSON, not zarr-python's objects",
    "test_zarr_fill_value_setting": "use_zarr_fill_value_as_mask=False is obeyed for v2, where xarray's engine ignores it",
    "test_chunk_encoding_with_dask": "overlapping tasks are written under locks",
    "test_shard_encoding_with_dask": "overlapping tasks are written under locks",
}
"""Part of a test's name → why it may differ."""

WATCHES_ZARR_PYTHON = (
    "TestInstrumentedZarrStore",
    "TestZarrDictStore::test_async_load_multiple_variables",
    "TestZarrDictStore::test_concurrent_load_multiple_objects",
    "TestZarrDictStore::test_indexing",
)
"""Tests beside `ZarrBase` that count calls of zarr-python's own classes, which are not called here; left out."""

_found: dict[str, str] = {}


def pytest_configure() -> None:
    """Replace xarray's engine and writer by tessarr's, in the run that measures tessarr."""
    if TESSARR not in os.environ:
        return
    import xarray
    import xarray.backends.zarr as theirs
    from xarray.backends import common, plugins

    from tessarr.xarray import TessarrBackendEntrypoint, TessarrStore, to_zarr

    def written(obj: Any, *args: Any, **kwargs: Any) -> Any:
        if os.environ[TESSARR] == "refuse" and kwargs.get("safe_chunks", True) is True:
            kwargs["safe_chunks"] = "refuse"
        return to_zarr(obj, *args, **kwargs)

    for kind in (xarray.Dataset, xarray.DataArray, xarray.DataTree):
        kind.to_zarr = written
    common.BACKEND_ENTRYPOINTS["zarr"] = ("zarr", TessarrBackendEntrypoint)
    plugins.refresh_engines()
    xarray.backends.ZarrStore = theirs.ZarrStore = TessarrStore


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    """Set tessarr's default format to the one that the test sets in zarr-python."""
    import zarr

    import tessarr

    chosen = zarr.config.get("default_zarr_format")
    wanted = {"default_zarr_format": chosen, "attributes.allow_nan": True, "names.warn_reserved": False}
    with tessarr.config.set(wanted):
        yield


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the outcome of each test."""
    name = report.nodeid.rpartition("test_backends.py")[2].lstrip(":")
    if report.when == "call" or report.failed:
        _found[name] = report.outcome


def pytest_sessionfinish() -> None:
    """Write the outcomes to the report."""
    Path(os.environ[REPORT]).write_text(json.dumps(_found), encoding="utf-8")


def outcomes(mode: str | None, chosen: str) -> dict[str, str]:
    """Run the tests and map each to its outcome; `mode`: ``None`` for zarr-python, ``"refuse"`` or ``"locks"`` for tessarr."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.json"
        here = Path(__file__).resolve()
        paths = [str(here.parent), str(here.parents[1] / "src"), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, REPORT: str(report), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        environment.pop(TESSARR, None)
        if mode is not None:
            environment[TESSARR] = mode
        command = [sys.executable, "-m", "pytest", "-q", "-p", here.stem, "-p", "no:cacheprovider", "-W", "ignore"]
        command += ["--tb=no", "--pyargs", TESTS, "-k", chosen, "--asyncio-mode=auto"]
        run = subprocess.run(command, env=environment, cwd=place, capture_output=True, text=True, check=False)
        if not report.exists():
            raise SystemExit(run.stdout[-4000:] + run.stderr[-4000:])
        return dict(json.loads(report.read_text(encoding="utf-8")))


def why(test: str) -> str:
    """Return the reason why a test may differ."""
    return next((reason for part, reason in EXPLAINED.items() if part in test), "not explained")


def main() -> int:
    """Run the tests both ways and print the differences; return 1 if less than 99 % pass or a difference is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", dest="chosen", default=CHOSEN, help="pytest's choice of tests")
    parser.add_argument("--locks", action="store_true", help="measure the default of safe_chunks, not xarray's")
    given = parser.parse_args()
    theirs = outcomes(None, given.chosen)
    ours = outcomes("locks" if given.locks else "refuse", given.chosen)
    passed = [test for test, outcome in theirs.items() if outcome == "passed"]
    wanted = [test for test in passed if not test.startswith(WATCHES_ZARR_PYTHON)]
    missed = [test for test in wanted if ours.get(test) != "passed"]
    share = 1 - len(missed) / max(len(wanted), 1)
    print(f"{len(wanted) - len(missed)} of the {len(wanted)} tests that pass with zarr-python: {share:.1%}")
    print(f"{len(passed) - len(wanted)} that count calls of zarr-python's own classes are left out")
    for test in missed:
        print(f"  {test}: {why(test)}")
    return int(share < 0.99 or any(why(test) == "not explained" for test in missed))


if __name__ == "__main__":
    raise SystemExit(main())
