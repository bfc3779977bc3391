"""Codecs and data types of tessarr under zarr-python's entry points."""

from __future__ import annotations

import importlib.metadata
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.dtype import data_type_registry

import tessarr
from tessarr import zarr_python
from tessarr.errors import CodecError, MetadataValidationError
from tessarr.zarr_python.codecs import N5Default
from tessarr.zarr_python.data_types import DATA_TYPES
from tests.conftest import PYPROJECT
from tests.narrow import numpy_of

pytest.importorskip("ml_dtypes", reason="the extra `ml`")


def ours(group: str) -> dict[str, Any]:
    """What this checkout offers, whatever an older installation does."""
    points = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["entry-points"][group]
    return {name: importlib.metadata.EntryPoint(name, value, group).load() for name, value in points.items()}


@pytest.fixture(autouse=True)
def _known() -> None:
    """zarr-python looks for entry points when it is imported, which may have been before they were there."""
    for name, codec in {**ours("zarr.codecs"), **REGISTERED}.items():
        zarr.registry.register_codec(name, codec)
    for name, data_type in ours("zarr.data_type").items():
        data_type_registry.register(name, data_type)


def conf(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


LZ4 = conf("tessarr.lz4java", block_size=65536)
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bitround": ("f4", {"filters": [conf("bitround", keepbits=4)]}),
    "zarrs.bitround": ("f4", {"filters": [conf("zarrs.bitround", keepbits=4)]}),
    "reshape": ("i4", {"filters": [conf("reshape", shape=[[0, 1]])]}),
    "zarrs.squeeze": ("i4", {"filters": [conf("zarrs.squeeze")], "chunks": (1, 4)}),
    "singleton_dim": ("i4", {"filters": [conf("singleton_dim", operations=[{"remove": 0}])], "chunks": (1, 4)}),
    "packbits": ("bool", {"serializer": conf("packbits")}),
    "zfp": ("f4", {"serializer": conf("zfp", mode="reversible")}),
    "zarrs.zfp": ("f4", {"serializer": conf("zarrs.zfp", mode="reversible")}),
    "n5_default": (
        "i4",
        {"serializer": conf("n5_default", codecs=[conf("transpose", order=[1, 0]), conf("bytes", endian="big")])},
    ),
    "pad": ("i4", {"compressors": [conf("pad", location="start", nbytes=7)]}),
    "tessarr.lz4java": ("i4", {"compressors": [LZ4]}),
    "jpeg": ("u1", {"serializer": conf("jpeg", quality=100)}),
}
REGISTERED = {"n5_default": N5Default}
"""zarr-n5 offers these names too: two codecs of one name would make zarr-python warn and take either."""
NOT_HERE = {"conditional": "", "n5_varlen": "needs text or bytes"}


def made(create: Any, place: Path, name: str, **more: Any) -> Any:
    dtype, options = LAYOUTS[name]
    kwargs: dict[str, Any] = {"shape": (4, 8), "chunks": (4, 4), "dtype": dtype, "compressors": None, "fill_value": 0}
    return create(place, **{**kwargs, **options, **more})


def values(name: str) -> Any:
    numbers = np.arange(32).reshape(4, 8)
    return (numbers % 3 == 0) if LAYOUTS[name][0] == "bool" else (numbers // 8 * 4).astype(LAYOUTS[name][0])


@pytest.mark.parametrize("name", LAYOUTS)
def test_zarr_python_reads_what_tessarr_wrote_and_the_reverse(name: str, tmp_path: Path) -> None:
    mine = made(tessarr.create_array, tmp_path / "mine", name)
    mine[...] = values(name)
    expected = mine[...]
    read = zarr.open_array(tmp_path / "mine", mode="r")
    assert np.array_equal(read[...], expected)
    theirs = made(zarr.create_array, tmp_path / "theirs", name)
    theirs[...] = values(name)
    assert np.array_equal(theirs[...], expected)
    assert np.array_equal(tessarr.open_array(tmp_path / "theirs")[...], expected)
    theirs[1, 2:7] = 1
    assert np.array_equal(tessarr.open_array(tmp_path / "theirs")[...], theirs[...])
    assert np.array_equal(pickle.loads(pickle.dumps(theirs))[...], theirs[...])
    (codec,) = [c for c in theirs.metadata.codecs if c.to_dict()["name"] == name]
    assert type(codec).from_dict(codec.to_dict()) == codec


def test_every_entry_point_is_tested_or_said_not_to_be() -> None:
    assert ours("zarr.codecs").keys() == (LAYOUTS.keys() - REGISTERED.keys()) | NOT_HERE.keys()
    assert ours("zarr.data_type") == {data_type._zarr_v3_name: data_type for data_type in DATA_TYPES}


def test_none_of_our_codecs_has_a_name_that_zarr_python_has() -> None:
    code = "import zarr.registry as r; import zarr; print(*[n for n in __import__('zarr').config.get('codecs')])"
    known = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(known) & ours("zarr.codecs").keys() == set()


@pytest.mark.parametrize("name", ["reshape", "packbits", "pad", "zfp"])
def test_the_patch_serves_arrays_with_our_codecs(name: str, tmp_path: Path) -> None:
    theirs = made(zarr.create_array, tmp_path / "theirs", name)
    with zarr_python.patch(strict=True):
        theirs[...] = values(name)
        inside = theirs[...]
    assert np.array_equal(inside, theirs[...])


def test_codecs_within_shards(tmp_path: Path) -> None:
    theirs = made(zarr.create_array, tmp_path / "theirs", "packbits", shards=(8, 8))
    theirs[...] = values("packbits")
    assert np.array_equal(theirs[...], values("packbits"))
    assert np.array_equal(tessarr.open_array(tmp_path / "theirs")[...], values("packbits"))


def test_conditional_chooses_by_the_data_in_both(tmp_path: Path) -> None:
    codec = conf("conditional", codecs=[conf("gzip", level=1)])
    mine = tessarr.create_array(tmp_path, shape=(300,), dtype="u1", compressors=[codec])
    mine[...] = 7
    assert (numpy_of(zarr.open_array(tmp_path)[...]) == 7).all()


def test_a_codec_that_cannot_apply_to_the_chunks_says_so_and_one_that_is_configured_wrongly_is_refused() -> None:
    z = zarr.create_array({}, shape=(4, 4), dtype="f8", serializer=conf("jpeg", quality=90), compressors=None)
    with pytest.raises(CodecError, match="jpeg"):
        z[...] = 1
    with pytest.raises(MetadataValidationError, match="padding"):
        zarr.create_array({}, shape=(4,), dtype="bool", serializer=conf("packbits", padding="x"), compressors=None)


def data_type_of(array: Any) -> Any:
    """The data type of an array of v3, of zarr-python's or ours."""
    return array.metadata.data_type


@pytest.mark.parametrize("data_type", DATA_TYPES, ids=lambda data_type: data_type._zarr_v3_name)
def test_data_types_mean_the_same_in_both(data_type: Any, tmp_path: Path) -> None:
    name = data_type._zarr_v3_name
    mine = tessarr.create_array(tmp_path / "mine", shape=(4,), chunks=(2,), dtype=name)
    bits = np.array([0, 1, 2, 3] * mine.dtype.itemsize, "u1").reshape(mine.dtype.itemsize, 4).T.copy()
    elements = (bits % 2 if name.startswith(("int2", "uint2")) else bits).view(mine.dtype).reshape(4)
    mine[:3] = elements[:3]
    read = zarr.open_array(tmp_path / "mine", mode="r+")
    assert read.dtype == mine.dtype
    assert numpy_of(read[...]).tobytes() == mine[...].tobytes()
    theirs = zarr.create_array(tmp_path / "theirs", shape=(4,), chunks=(2,), dtype=name, fill_value=read.fill_value)
    theirs[:3] = elements[:3]
    again = tessarr.open_array(tmp_path / "theirs")
    assert data_type_of(again) == data_type_of(mine)
    assert again[...].tobytes() == mine[...].tobytes() == numpy_of(theirs[...]).tobytes()
    assert pickle.loads(pickle.dumps(data_type_of(theirs))) == data_type_of(theirs)
    with zarr_python.patch(strict=True):
        assert numpy_of(theirs[...]).tobytes() == mine[...].tobytes()
    if not data_type.is_named_only:
        assert type(data_type_of(zarr.create_array({}, shape=(4,), dtype=mine.dtype))) is data_type


def test_a_new_process_finds_the_codecs(tmp_path: Path) -> None:
    mine = made(tessarr.create_array, tmp_path / "mine", "packbits")
    mine[...] = values("packbits")
    package = tmp_path / "packages" / "tessarr_here-0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: tessarr-here\nVersion: 0\n")
    lines = [f"{name} = {codec.__module__}:{codec.__name__}" for name, codec in ours("zarr.codecs").items()]
    types = [f"{name} = {kind.__module__}:{kind.__name__}" for name, kind in ours("zarr.data_type").items()]
    (package / "entry_points.txt").write_text("\n".join(["[zarr.codecs]", *lines, "[zarr.data_type]", *types]) + "\n")
    code = f"""
import sys
sys.path[:0] = {[str(tmp_path / "packages"), *sys.path]!r}
import zarr
from zarr.core.dtype import data_type_registry
data_type_registry._lazy_load()
zarr.create_array({{}}, shape=(4,), dtype="f4")
assert data_type_registry.get("int4").__module__ == "tessarr.zarr_python.data_types"
print(zarr.open_array({str(tmp_path / "mine")!r}, mode="r")[0].astype(int).tolist())
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(values("packbits")[0].astype(int).tolist())


def test_the_data_types_load_nothing_of_tessarr_before_an_array_has_one() -> None:
    code = """
import sys
import tessarr, zarr
before = set(sys.modules)
import tessarr.zarr_python.data_types
print(*sorted(name for name in set(sys.modules) - before if name.startswith("tessarr.")))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["tessarr.zarr_python", "tessarr.zarr_python.data_types"]
