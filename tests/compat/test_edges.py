"""What code written for zarr-python meets at the edges: keywords, defaults, errors, asynchronous forms."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import tessarr
import tessarr as zarr
import tessarr.api.asynchronous
from tessarr.core.group import GroupMetadata
from tessarr.errors import (
    ArrayNotFoundError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    MetadataValidationError,
    NodeTypeValidationError,
    UnknownCodecError,
)
from tests.narrow import calls, group_of, numpy_of

# -- making --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_like_another_have_their_own_value_and_the_group_s_format(zarr_format: int) -> None:
    group = zarr.group(zarr_format=zarr_format)
    for source in (
        zarr.create_array({}, shape=(4,), chunks=(2,), dtype="f4", fill_value=5),
        zarr.create_array({}, shape=(4,), chunks=(2,), dtype="f4", fill_value=5, zarr_format=2),
        np.full(4, 5, "f4"),
    ):
        made = [
            getattr(group, f"{kind}_like")(kind, data=source, overwrite=True) for kind in ("zeros", "ones", "empty")
        ]
        assert [z[:].tolist() for z in made[:2]] == [[0] * 4, [1] * 4]
        assert {z.dtype for z in made} == {np.dtype("f4")}
        assert {z.zarr_format for z in made} == {zarr_format}
        assert group.full_like("full", data=source, fill_value=7, overwrite=True)[:].tolist() == [7] * 4
        if isinstance(source, zarr.Array):
            assert {z.chunks for z in made} == {(2,)}


def test_arrays_like_a_sharded_or_rectilinear_one_are_cut_as_it_is() -> None:
    varied = zarr.create_array({}, shape=(6, 4), chunks=[[1, 2, 3], [4]], dtype="i4")
    shards = zarr.create_array({}, shape=(6,), chunks=(1,), shards=[[2, 4]], dtype="i4")
    group = zarr.group()
    for made in (zarr.ones_like(varied), zarr.array(varied), group.ones_like("x", data=varied)):
        assert made.read_chunk_sizes == ((1, 2, 3), (4,))
    made = zarr.ones_like(shards)
    assert made.write_chunk_sizes == ((2, 4),)
    assert made.chunks == (1,)
    assert made[:].tolist() == [1] * 6
    assert zarr.zeros_like(shards, zarr_format=2, chunks=(3,)).zarr_format == 2


def test_a_chunk_key_encoding_is_given_as_a_pair_too() -> None:
    store: dict[str, bytes] = {}
    zarr.create((4, 4), chunks=(2, 2), store=store, chunk_key_encoding=("v2", "/"))[:] = 1
    assert "0/0" in store
    assert json.loads(store["zarr.json"])["chunk_key_encoding"]["name"] == "v2"


def test_compressor_none_of_a_group_s_array_is_no_compressor() -> None:
    group = zarr.group(zarr_format=2)
    assert group.create_array("a", shape=3, dtype="i4", compressor=None).compressors == ()
    assert group.create_array("b", shape=3, dtype="i4").compressors != ()
    assert group.create_array("c", shape=3, dtype="i4", compressor=numcodecs.BZ2()).compressor == numcodecs.BZ2()
    with pytest.raises(ValueError, match="either"):
        group.create_array("d", shape=3, dtype="i4", compressor=None, compressors=[])


def test_data_may_be_left_unwritten() -> None:
    group = zarr.group()
    assert group.create("a", data=np.ones(3), write_data=False)[:].tolist() == [0, 0, 0]
    assert group.create_array("b", data=np.ones(3), write_data=False)[:].tolist() == [0, 0, 0]
    assert zarr.create(data=np.ones(3), write_data=False)[:].tolist() == [0, 0, 0]


def test_a_shape_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    for call in calls(
        lambda: zarr.create(),
        lambda: zarr.open_array(tmp_path / "x", mode="w"),
        lambda: zarr.open_array(tmp_path / "x", mode="w-"),
        lambda: zarr.group().create("x", dtype="i4"),
    ):
        with pytest.raises(TypeError, match="shape"):
            call()
    assert not (tmp_path / "x").exists()


def test_saving_takes_storage_options_for_what_they_are(tmp_path: Path) -> None:
    zarr.save(str(tmp_path / "a"), np.arange(3), storage_options=None)
    assert numpy_of(zarr.load(str(tmp_path / "a"))).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="storage_options"):
        zarr.save(str(tmp_path / "b"), np.arange(3), storage_options={"anon": True})


def test_an_array_is_required_by_what_its_elements_can_be_cast_to() -> None:
    group = zarr.group()
    group.create_array("x", shape=(3,), dtype="i4")
    group.create_array("t", shape=(3,), dtype=str)
    assert group.require_array("x", shape=(3,), dtype="f8").dtype == np.int32
    assert group.require_array("x", shape=3, dtype=">i4", exact=True, config={"order": "F"}).order == "F"
    assert group.require_array("t", shape=(3,), dtype=str).name == "/t"
    for dtype, exact in [("i2", False), ("i2", True), ("f8", True)]:
        with pytest.raises(TypeError, match="dtype"):
            group.require_array("x", shape=(3,), dtype=dtype, exact=exact)
    with pytest.raises(TypeError, match="dtype"):
        group.require_array("t", shape=(3,), dtype="i4")


def test_keywords_are_there_by_name() -> None:
    by_name: dict[Callable[..., object], str] = {
        zarr.create: "chunks dtype compressor fill_value order synchronizer object_codec chunk_shape codecs mode data",
        zarr.group: "chunk_store cache_attrs synchronizer meta_array",
        zarr.zeros_like: "zarr_format",
        zarr.Group.create_array: "shape chunks shards compressors compressor serializer write_data",
        zarr.Group.create: "shape chunks shards compressors compressor serializer write_data",
        zarr.AsyncGroup.create_array: "shape chunks shards compressors compressor serializer write_data",
        tessarr.api.asynchronous.create: "chunks dtype compressor",
        zarr.create_async: "chunks dtype compressor",
    }
    for function, names in by_name.items():
        assert not set(names.split()) - set(inspect.signature(function).parameters), function


def test_a_hierarchy_is_made_of_documents_of_both_formats_with_the_groups_above() -> None:
    for zarr_format in (2, 3):
        group = zarr.group(zarr_format=zarr_format, attributes={"g": 1}).metadata
        array = zarr.create_array({}, shape=(3,), dtype="i4", zarr_format=zarr_format, attributes={"a": 1}).metadata
        for nodes in ({"p/g": group, "p/q/x": array}, {"p/g": group.to_dict(), "p/q/x": array.to_dict()}):
            store: dict[str, bytes] = {}
            made = dict(zarr.create_hierarchy(store=store, nodes=nodes))
            assert sorted(made) == ["", "p", "p/g", "p/q", "p/q/x"]
            assert {node.zarr_format for node in made.values()} == {zarr_format}
            root = zarr.open_group(store, mode="r")
            assert root["p/g"].attrs.asdict() == {"g": 1}
            assert root["p/q/x"].attrs.asdict() == {"a": 1}
            below = dict(group_of(zarr.open_group(store)["p"]).create_hierarchy({"n/m": group}))
            assert sorted(below) == ["n", "n/m"]
    assert GroupMetadata() == GroupMetadata(zarr_format=3)


def test_objects_of_zarr_python_say_what_they_are() -> None:
    theirs = pytest.importorskip("zarr")
    codecs: Any = theirs.codecs
    z = zarr.create_array(
        {},
        shape=(4, 4),
        dtype=theirs.dtype.Int16(),
        filters=[codecs.TransposeCodec(order=(1, 0))],
        serializer=codecs.BytesCodec(endian="big"),
        compressors=[codecs.BloscCodec(cname="lz4"), codecs.Crc32cCodec()],
        chunk_key_encoding=theirs.create_array({}, shape=(1,), dtype="i4").metadata.chunk_key_encoding,
    )
    assert z.dtype == np.int16
    assert z.filters == (zarr.codecs.TransposeCodec(order=(1, 0)),)
    assert z.serializer == zarr.codecs.BytesCodec(endian="big")
    assert z.compressors[0].to_dict()["configuration"]["typesize"] == 2
    z[:] = 3
    assert (z[:] == 3).all()
    nested = codecs.ShardingCodec(chunk_shape=(2,), codecs=[codecs.BytesCodec(), codecs.GzipCodec(level=2)])
    assert zarr.create_array({}, shape=(4,), chunks=4, dtype="i4", serializer=nested, compressors=None).chunks == (2,)
    assert zarr.create_array({}, shape=(1,), dtype=theirs.dtype.VariableLengthUTF8()).dtype.kind in "TO"


# -- opening -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["r", "r+", "a"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_other_kind_is_both_not_found_and_in_the_way(tmp_path: Path, mode: str, zarr_format: int) -> None:
    root = zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format)
    root.create_array("x", shape=(3,), dtype="i4")
    root.create_group("g")
    for array_error in (ArrayNotFoundError, ContainsGroupError, NodeTypeValidationError, FileNotFoundError, ValueError):
        with pytest.raises(array_error, match="a group"):
            zarr.open_array(tmp_path / "g", mode=mode)
        with pytest.raises(array_error, match="a group"):
            zarr.open(tmp_path / "g", mode=mode, shape=(3,), dtype="i4")
        with pytest.raises(array_error):
            root.get_array("g")
    for group_error in (GroupNotFoundError, ContainsArrayError, FileNotFoundError, ValueError):
        with pytest.raises(group_error, match="an array"):
            zarr.open_group(tmp_path / "x", mode=mode)
        with pytest.raises(group_error):
            root.get_group("x")


def test_what_is_in_the_way_of_an_exclusive_mode_is_a_file_that_exists(tmp_path: Path) -> None:
    zarr.open_group(tmp_path, mode="w-")
    for opener in (zarr.open, zarr.open_group):
        with pytest.raises(FileExistsError):
            opener(tmp_path, mode="w-")


def test_a_document_with_an_unknown_codec_is_refused_for_that(tmp_path: Path) -> None:
    store: dict[str, bytes] = {}
    zarr.group(store).create_array("x", shape=(3,), dtype="i4")
    store["x/zarr.json"] = store["x/zarr.json"].replace(b'"zstd"', b'"frobnicate"')
    for error in (UnknownCodecError, MetadataValidationError):
        for call in calls(lambda: zarr.open_array(store, path="x", mode="r"), lambda: zarr.group(store)["x"]):
            with pytest.raises(error, match=r"frobnicate(?s:.)*") as caught:
                call()
            assert "/x" in str(caught.value)


def test_a_keyword_that_nobody_knows_is_an_error_also_where_nothing_is_made(tmp_path: Path) -> None:
    zarr.open_array(tmp_path / "x", mode="w", shape=(3,), dtype="i4")
    zarr.open_array(tmp_path / "x", mode="r", cache_metadata=True, synchronizer=None)
    for call in (zarr.open, zarr.open_array):
        with pytest.raises(TypeError, match="chnks"):
            call(tmp_path / "x", mode="r", chnks=3)
    with pytest.raises(TypeError, match="chnks"):
        zarr.open_group(tmp_path / "g", mode="w", chnks=3)  # type: ignore[call-arg]


# -- groups, blocks, settings --------------------------------------------------------------------------------------------


def test_a_negative_depth_is_an_error() -> None:
    for call in (zarr.group().members, zarr.group().nmembers):
        with pytest.raises(ValueError, match="max_depth"):
            call(max_depth=-1)


def test_blocks_of_a_sharded_array_are_shards() -> None:
    values = np.arange(64).reshape(8, 8)
    z = zarr.create_array({}, data=values, chunks=(2, 2), shards=(4, 4))
    assert np.array_equal(z.blocks[1, 0], values[4:8, 0:4])
    z.blocks[0, 1] = 0
    assert not z[:4, 4:].any()
    assert np.array_equal(z[4:], values[4:])
    assert z.cdata_shape == (4, 4)


def test_consolidated_metadata_is_read_by_name() -> None:
    group = zarr.group({})
    group.create_array("a/x", shape=(3,), dtype="i4")
    found = zarr.consolidate_metadata(group.store).metadata.consolidated_metadata
    assert found is not None
    assert list(found.metadata) == ["a"]
    assert found.flattened_metadata["a/x"].shape == (3,)


def test_a_codec_with_automatic_options_has_a_dictionary_that_makes_it_again() -> None:
    codec = zarr.codecs.BloscCodec(cname="lz4")
    told: Any = codec.to_dict()
    assert told == {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "blocksize": 0}}
    assert zarr.codecs.BloscCodec.from_dict(told) == codec
    made = zarr.create_array({}, shape=(3,), dtype="i4", compressors=told)
    assert made.compressors[0].to_dict()["configuration"]["typesize"] == 4


def test_a_store_is_its_url_as_text(tmp_path: Path) -> None:
    assert str(zarr.storage.LocalStore(tmp_path)) == tmp_path.as_uri()
    assert str(zarr.storage.MemoryStore()).startswith("memory://")


def test_the_settings_are_printed_updated_and_copied(capsys: pytest.CaptureFixture[str]) -> None:
    with zarr.config.set({"array.order": "C"}):
        zarr.config.update({"array.order": "F"})
        copy = zarr.config.to_dict()
        assert copy["array"]["order"] == "F"
        copy["array"]["order"] = "C"
        assert zarr.config.get("array.order") == "F"
        zarr.config.pprint()
    assert "'order': 'F'" in capsys.readouterr().out
    stream = io.StringIO()
    zarr.config.pprint(stream=stream, width=40)
    assert "'order': 'C'" in stream.getvalue()
    assert capsys.readouterr().out == ""


def test_what_annotations_name_is_joined_with_other_types() -> None:
    from tessarr.core.common import JSON, AccessModeLiteral, ZarrFormat
    from tessarr.storage import StoreLike

    for name in (StoreLike, JSON, AccessModeLiteral, ZarrFormat):
        assert (zarr.Group | name) is not None
        assert name | None
    place: object
    for place in ("a", Path("a"), {}, None, zarr.MemoryStore(), zarr.zeros(1).store_path):
        assert isinstance(place, StoreLike)
    assert not isinstance(5, StoreLike)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_summary_knows_the_format(zarr_format: int) -> None:
    group = zarr.group(zarr_format=zarr_format)
    for node in (group, group.create_array("x", shape=(3,), dtype="i4")):
        assert node.info._zarr_format == node.info_complete()._zarr_format == zarr_format
        assert type(node.info).__name__ == f"{type(node).__name__}Info"


# -- asynchronous --------------------------------------------------------------------------------------------------------


def test_asynchronous_groups_do_all_that_groups_do() -> None:
    async def work() -> None:
        group = await tessarr.api.asynchronous.open_group({}, mode="w")
        assert isinstance(group, zarr.AsyncGroup)
        await group.create_array("x", data=np.arange(4), chunks=(2,))
        await group.require_groups("p", "q")
        zeros = await group.zeros(name="z", shape=(2,), dtype="i4")
        assert isinstance(zeros, zarr.AsyncArray)
        assert (await (await group.ones_like(name="o", data=zeros._node)).getitem(...)).tolist() == [1, 1]
        assert (await (await group.full(name="f", shape=(1,), fill_value=4)).getitem(0)) == 4
        assert [name async for name in group.array_keys()] == ["f", "o", "x", "z"]
        assert [name async for name in group.group_keys()] == ["p", "q"]
        assert [node.path async for node in group.array_values()] == ["f", "o", "x", "z"]
        assert [node.path async for node in group.group_values()] == ["p", "q"]
        assert isinstance(await group.get_array("x"), zarr.AsyncArray)
        assert isinstance(await group.get_group("p"), zarr.AsyncGroup)
        with pytest.raises(GroupNotFoundError):
            await group.get_group("x")
        await group.move("x", "p/y")
        assert await group.contains("p/y")
        await group.setitem("s", np.arange(2))
        made = [path async for path, _ in group.create_hierarchy({"h": GroupMetadata(zarr_format=3)})]
        assert made == ["h"]
        assert "p" in str(await group.tree())
        assert (await group.update_attributes({"k": 1})).attrs["k"] == 1

    asyncio.run(work())


def test_asynchronous_forms_are_made_from_metadata_and_make_the_others() -> None:
    z = zarr.create_array({}, data=np.arange(3))
    held = zarr.AsyncArray(z.metadata, z.store_path)
    assert held == z.async_array == zarr.AsyncArray.from_dict(z.store_path, z.metadata.to_dict())
    assert zarr.Array(held)[:].tolist() == [0, 1, 2]
    assert (held.shape, held.chunks, held.with_config({"order": "F"}).order) == ((3,), (3,), "F")
    for zarr_format in (2, 3):
        group = zarr.group(zarr_format=zarr_format, attributes={"a": 1})
        same = zarr.AsyncGroup(group.metadata, group.store_path)
        assert same == group.async_group
        assert zarr.Group(same).attrs.asdict() == {"a": 1}
    with pytest.raises(NodeTypeValidationError):
        zarr.Group.from_dict({}, z.metadata.to_dict())


def test_every_function_of_the_asynchronous_module_is_a_coroutine() -> None:
    import tessarr.api.asynchronous as module

    for name in module.__all__:
        function = getattr(module, name)
        is_awaited = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        assert is_awaited or isinstance(function, type), name

    async def hierarchy() -> list[str]:
        nodes = {"": GroupMetadata(zarr_format=3), "a": GroupMetadata(zarr_format=3)}
        return [path async for path, _ in module.create_hierarchy(store={}, nodes=nodes)]

    assert asyncio.run(hierarchy()) == ["", "a"]


WITHOUT_IO = {
    "Array": "from_dict info_items view with_config open close",
    "Group": "from_dict info_items open from_store close",
    "Attributes": "asdict get keys values items",
    "zarr": "accelerate appender chunk_cache_info clear_chunk_cache print_debug_info set_format set_log_level transaction view",
}


def test_every_method_that_does_io_has_a_twin() -> None:
    for kind in (zarr.Array, zarr.Group):
        names = [name for name in dir(kind) if not name.startswith("_") and not name.endswith("_async")]
        methods = [name for name in names if inspect.isfunction(inspect.getattr_static(kind, name))]
        lacking = [name for name in methods if not hasattr(kind, f"{name}_async")]
        assert sorted(set(lacking) - set(WITHOUT_IO[kind.__name__].split()) - {"islice", "chunk_key"}) == []
    functions = [
        name for name in zarr.__all__ if inspect.isfunction(getattr(zarr, name)) and not name.endswith("_async")
    ]
    assert sorted({name for name in functions if not hasattr(zarr, f"{name}_async")}) == sorted(
        WITHOUT_IO["zarr"].split()
    )


def test_twins_do_what_their_functions_do() -> None:
    async def work() -> None:
        group = await zarr.group_async({})
        z = await group.create_async("x", shape=(4,), chunks=(2,), dtype="i4")
        assert await z.nchunks_initialized_async() == 0
        z[:2] = 1
        assert await z.stored_chunks_async() == [((0,), "x/c/0")]
        assert await z.hexdigest_async() == z.hexdigest()
        assert await group.array_keys_async() == ["x"]
        assert await group.visititems_async(lambda path, _: path) == "x"
        await group.attrs.update_async({"a": 1})
        await group.attrs.put_async({"b": 2})
        assert (await zarr.open_group_async(group.store)).attrs.asdict() == {"b": 2}
        made = await zarr.create_hierarchy_async(store=group.store, nodes={"h": GroupMetadata(zarr_format=3)})
        assert [path for path, _ in made] == ["h"]

    asyncio.run(work())


@pytest.mark.parametrize("kind", ["array", "group"])
def test_an_error_is_made_of_the_parts_of_its_message(kind: str) -> None:
    """As pydantic-zarr raises it."""
    error = getattr(tessarr.errors, f"Contains{kind.title()}Error")("file:///a", "b")
    assert str(error) == f"{'An array' if kind == 'array' else 'A group'} exists in store 'file:///a' at path 'b'."
