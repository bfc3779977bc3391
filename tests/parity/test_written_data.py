"""What tessarr writes, every other implementation reads as the same values; and the other way round.

zarr-python 3, TensorStore and zarrs run here; zarr-python 2.18 runs in an environment of its own
(`scripts/zarr2_env.py`).
"""

from __future__ import annotations

import json
import pickle
import subprocess
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr
from zarr2_env import make_environment

import tessarr
from tests.narrow import group_of
from tests.parity.cases import Case, equal, v2_cases, v3_cases

pytestmark = [
    pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning"),
    pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning"),
    pytest.mark.filterwarnings("ignore:.*not in the Zarr version 3 specification"),
    pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification"),
    pytest.mark.filterwarnings("ignore:.*Array is unsupported by ZarrsCodecPipeline"),
]
V2 = {case.name: case for case in v2_cases()}
V3 = {case.name: case for case in v3_cases()}


def write(place: Path, case: Case, zarr_format: int) -> None:
    keywords = {"chunks": (3, 4), **case.keywords}
    shape = case.values.shape
    z = tessarr.create(shape, store=place / case.name, zarr_format=zarr_format, **keywords)
    z[...] = case.values
    z.attrs["title"] = "wört"


@pytest.fixture(scope="module", params=["auto", "reference"])
def written_v2(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("v2")
    with tessarr.config.set({"engine": request.param}):
        for case in V2.values():
            write(place, case, 2)
    return place


@pytest.fixture(scope="module", params=["auto", "reference"])
def written_v3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("v3")
    with tessarr.config.set({"engine": request.param}):
        for case in V3.values():
            write(place, case, 3)
    return place


@pytest.fixture(scope="module")
def zarr2() -> str:
    return str(make_environment())


def peer(python: str, *arguments: str) -> None:
    script = Path(__file__).with_name("zarr2_peer.py")
    run = subprocess.run([python, "-W", "ignore", str(script), *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def restored(text: Any, shape: tuple[int, ...], data: Any) -> np.ndarray[Any, Any]:
    """Values as `zarr2_peer.plain` gives them."""
    if text == "O":
        values = np.empty(len(data), object)
        values[:] = data
        return values.reshape(shape)
    return np.frombuffer(data, np.lib.format.descr_to_dtype(text)).reshape(shape)


# -- tessarr writes ----------------------------------------------------------------------------------------------------


def test_zarr_python_2_reads_every_v2_array(written_v2: Path, zarr2: str, tmp_path: Path) -> None:
    peer(zarr2, "read", str(written_v2), str(tmp_path / "out"))
    found = pickle.loads((tmp_path / "out").read_bytes())
    assert found.keys() == V2.keys()
    failed = {name: values for name, values in found.items() if isinstance(values, str)}
    assert not failed
    wrong = [name for name, values in found.items() if not equal(restored(*values), V2[name].values)]
    assert not wrong


NOT_IN_ZARR_3_1 = {"struct"}  # nested structures; zarr-python reads them from 3.4.1 on


@pytest.mark.parametrize("name", [name for name in V2 if name not in NOT_IN_ZARR_3_1])
def test_zarr_python_3_reads_a_v2_array(written_v2: Path, name: str) -> None:
    z = zarr.open_array(written_v2 / name, mode="r")
    assert equal(z[...], V2[name].values)
    assert dict(z.attrs) == {"title": "wört"}


@pytest.mark.parametrize("name", V3)
def test_zarr_python_3_reads_a_v3_array(written_v3: Path, name: str) -> None:
    z = zarr.open_array(written_v3 / name, mode="r")
    assert equal(z[...], V3[name].values)
    assert dict(z.attrs) == {"title": "wört"}


NOT_IN_ZARRS = {"empty", "string"}


@pytest.mark.parametrize("name", [name for name in V3 if name not in NOT_IN_ZARRS])
def test_zarrs_reads_a_v3_array(written_v3: Path, name: str) -> None:
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True}):
        assert equal(zarr.open_array(written_v3 / name, mode="r")[...], V3[name].values)


def readable_by_tensorstore(case: Case) -> bool:
    keywords = case.keywords
    dtype = np.dtype(keywords["dtype"]) if keywords["dtype"] != "string" else np.dtype(object)
    compressor = getattr(keywords.get("compressor"), "codec_id", None)
    return dtype.kind not in "OmMUVS" and not keywords.get("filters") and compressor not in ("lzma", "gzip", "lz4")


@pytest.mark.parametrize("name", [name for name, case in V2.items() if readable_by_tensorstore(case)])
def test_tensorstore_reads_a_v2_array(written_v2: Path, name: str) -> None:
    assert equal(opened_by_tensorstore("zarr", written_v2 / name), V2[name].values)


@pytest.mark.parametrize("name", [name for name, case in V3.items() if readable_by_tensorstore(case)])
def test_tensorstore_reads_a_v3_array(written_v3: Path, name: str) -> None:
    assert equal(opened_by_tensorstore("zarr3", written_v3 / name), V3[name].values)


def opened_by_tensorstore(driver: str, place: Path) -> Any:
    return (
        tensorstore.open({"driver": driver, "kvstore": {"driver": "file", "path": str(place)}})
        .result()[...]
        .read()
        .result()
    )


# -- the others write --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_zarr_2(zarr2: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("zarr2")
    peer(zarr2, "write", str(place))
    return place


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_what_zarr_python_2_writes_is_read(by_zarr_2: Path, engine: str) -> None:
    expected = pickle.loads((by_zarr_2 / "expected.pickle").read_bytes())
    assert len(expected) > 35
    with tessarr.config.set({"engine": engine}):
        wrong = [
            name
            for name, values in expected.items()
            if not equal(tessarr.open_array(by_zarr_2 / name, mode="r")[...], restored(*values))
        ]
    assert not wrong


@pytest.mark.spec("N5-06", "N5-07")
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_zarr_python_2_and_tessarr_read_each_other_s_n5(zarr2: str, engine: str, tmp_path: Path) -> None:
    peer(zarr2, "write_n5", str(tmp_path))
    expected = pickle.loads((tmp_path / "expected.pickle").read_bytes())
    assert len(expected) == 36
    with tessarr.config.set({"engine": engine}):
        theirs = group_of(tessarr.open_n5(tmp_path / "c.n5", path="g"))
        assert sorted(theirs.array_keys()) == sorted(expected)
        for name, array in theirs.arrays():
            values = restored(*expected[name])
            assert equal(array[...], values.astype(array.dtype)), name
            assert dict(array.attrs) == {"title": name}
            serializer: Any = array.serializer
            mine = tessarr.create_n5(
                tmp_path / "ours" / "c.n5", path=f"g/{name}", shape=array.shape, chunks=array.chunks, dtype=array.dtype,
                compressor=serializer.compressor, attributes={"title": name},
            )  # fmt: skip
            mine[...] = values
    peer(zarr2, "read_n5", str(tmp_path / "ours"), str(tmp_path / "out"))
    found = pickle.loads((tmp_path / "out").read_bytes())
    assert found.keys() == expected.keys()
    for name, (values, title) in found.items():
        assert equal(restored(*values), restored(*expected[name]).astype(restored(*values).dtype)), name
        assert title == name


def codecs_of(chain: list[Any]) -> dict[str, Any]:
    """A v3 chain as the keywords of zarr-python's `create_array`."""
    at = next(i for i, codec in enumerate(chain) if codec["name"] in ("bytes", "sharding_indexed", "vlen-utf8"))
    return {"filters": chain[:at] or None, "serializer": chain[at], "compressors": chain[at + 1 :] or None}


@pytest.mark.parametrize("name", V3)
def test_what_zarr_python_3_writes_is_read(tmp_path: Path, name: str) -> None:
    case = V3[name]
    keywords = {"chunks": (3, 4), "fill_value": "" if name == "string" else 0, **case.keywords}
    chain = codecs_of(keywords.pop("codecs"))
    if name == "empty":
        keywords["chunks"] = (1, 4)
    z = zarr.create_array(tmp_path / "z", shape=case.values.shape, **keywords, **chain)
    z[...] = case.values
    for engine in ("auto", "reference"):
        with tessarr.config.set({"engine": engine}):
            assert equal(tessarr.open_array(tmp_path / "z", mode="r")[...], case.values)


@pytest.mark.parametrize("name", [name for name, case in V3.items() if readable_by_tensorstore(case)])
def test_what_tensorstore_writes_in_a_v3_array_is_read(tmp_path: Path, name: str) -> None:
    case = V3[name]
    write(tmp_path, case, 3)
    document = json.loads((tmp_path / name / "zarr.json").read_text())
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "t")}, "create": True}
    document.pop("zarr_format"), document.pop("node_type")
    array = tensorstore.open({**spec, "metadata": document}).result()
    array[...].write(case.values).result()
    for engine in ("auto", "reference"):
        with tessarr.config.set({"engine": engine}):
            assert equal(tessarr.open_array(tmp_path / "t", mode="r")[...], case.values)


@pytest.mark.parametrize("name", [name for name in V3 if name not in NOT_IN_ZARRS])
def test_what_zarrs_writes_is_read(tmp_path: Path, name: str) -> None:
    case = V3[name]
    write(tmp_path, case, 3)
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True}):
        z = zarr.open_array(tmp_path / name, mode="r+")
        z[...] = np.zeros_like(case.values)
        z[...] = case.values
    for engine in ("auto", "reference"):
        with tessarr.config.set({"engine": engine}):
            assert equal(tessarr.open_array(tmp_path / name, mode="r")[...], case.values)


def test_a_vlen_filter_on_a_fixed_text_dtype_makes_texts_that_others_read(tmp_path: Path) -> None:
    """xarray passes such pairs; zarr-python 3.1 writes them into documents that it cannot read itself, tessarr can."""
    values = np.array(["a", "ñbc", "日"], "<U3")
    keywords: dict[str, Any] = {
        "shape": 3,
        "chunks": 2,
        "dtype": "<U3",
        "zarr_format": 2,
        "filters": [numcodecs.VLenUTF8()],
    }
    theirs = zarr.create_array(tmp_path / "theirs", **keywords)
    theirs[:] = values
    read = tessarr.open_array(tmp_path / "theirs", mode="r")
    assert read.dtype == np.dtype("<U3")
    assert equal(read[:], values)
    ours = tessarr.create_array(tmp_path / "ours", **keywords)
    ours[:] = values
    assert equal(zarr.open_array(tmp_path / "ours", mode="r")[:], values)
