"""Pyramids: values against a plain reckoning of every block, what is held in memory, resuming, and descriptions."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

import tessarr
from tessarr.conventions import check_hierarchy, layout, multiscales, ome, spatial
from tessarr.errors import (
    ArrayNotFoundError,
    BaseZarrError,
    ContainsArrayError,
    ReadOnlyError,
    UnsupportedOperationError,
)
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools.pyramid import Level, build_pyramid
from tessarr.tools.pyramid.reduce import reduce
from tests.narrow import array_of
from tests.tools.stopping import StoppedError, stop_after

SCHEMAS = Path(__file__).parents[1] / "fixtures" / "schemas"


def blocks(values: Any, factors: tuple[int, ...]) -> dict[tuple[int, ...], list[Any]]:
    """Every block's elements, gathered one element at a time."""
    found: dict[tuple[int, ...], list[Any]] = {}
    for at in product(*map(range, values.shape)):
        found.setdefault(tuple(i // f for i, f in zip(at, factors, strict=True)), []).append(values[at].item())
    return found


def plainly(values: Any, factors: tuple[int, ...], one: Callable[[list[Any]], Any]) -> Any:
    out = np.empty([-(-n // f) for n, f in zip(values.shape, factors, strict=True)], values.dtype)
    for at, elements in blocks(values, factors).items():
        out[at] = one(elements)
    return out


def mean_of_integers(elements: list[int]) -> int:
    whole, rest = divmod(sum(elements), len(elements))
    return whole + (2 * rest > len(elements) or (2 * rest == len(elements) and whole % 2 == 1))


def mode_of(elements: list[Any]) -> Any:
    counts = Counter(elements)
    return min(value for value, count in counts.items() if count == max(counts.values()))


def group_with(values: Any, **kwargs: Any) -> Any:
    group = tessarr.create_group(MemoryStore(), zarr_format=kwargs.pop("zarr_format", 3))
    kwargs.setdefault("chunks", (3,) * np.ndim(values))
    group.create_array("0", data=np.asarray(values), **kwargs)
    return group


def schema(folder: str, name: str) -> Any:
    """A published schema; the others of its family are found by their URLs."""
    files = {path: json.loads(path.read_text(encoding="utf-8")) for path in (SCHEMAS / folder).rglob("*.schema*")}
    resources = [
        (content["$id"], Resource.from_contents(content, default_specification=DRAFT202012))
        for content in files.values()
        if "$id" in content
    ]
    chosen = json.loads((SCHEMAS / folder / name).read_text(encoding="utf-8"))
    return jsonschema.validators.validator_for(chosen)(chosen, registry=Registry().with_resources(resources))


# -- values ------------------------------------------------------------------------------------------------------------

SHAPES = [(7,), (6, 4), (5, 7), (1, 9), (3, 5, 4)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("factor", [2, 3])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8", ">i2"])
def test_the_mean_of_integers_is_exact_and_rounded_half_to_even(shape: Any, factor: int, dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.random.default_rng(1).integers(
        info.min, info.max, shape, np.dtype(dtype).newbyteorder("="), endpoint=True
    )
    factors = (factor,) * len(shape)
    made = reduce(values.astype(dtype), factors, "mean")
    assert made.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(made, plainly(values, factors, mean_of_integers))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16"])
def test_the_mean_of_floats_is_added_up_in_double_precision(dtype: str) -> None:
    values = (np.random.default_rng(2).normal(size=(5, 7)) * 100).astype(dtype)
    made = reduce(values, (2, 3), "mean")
    np.testing.assert_allclose(
        made, plainly(values, (2, 3), lambda e: sum(e) / len(e)), rtol=1e-3 if dtype == "f2" else 1e-6
    )
    assert made.dtype == np.dtype(dtype)


def test_a_mean_of_halves_does_not_lose_what_float16_cannot_add_up() -> None:
    assert reduce(np.full((4096,), 60000, "f2"), (4096,), "mean").tolist() == [60000.0]


def test_the_mean_of_bools_is_what_more_than_half_are() -> None:
    values = np.array([[1, 1, 0, 1], [1, 0, 0, 1]], bool)
    assert reduce(values, (2, 2), "mean").tolist() == [[True, False]]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "M8[s]"])
def test_the_maximum_and_the_mode_are_those_of_every_block(shape: Any, dtype: str) -> None:
    values = np.random.default_rng(3).integers(0, 4, shape).astype(dtype)
    factors = (2,) * len(shape)
    ways: tuple[tuple[Literal["max", "mode"], Any], ...] = (("max", max), ("mode", mode_of))
    for method, one in ways:
        numbers = values.view("i8") if dtype.startswith("M") else values
        expected = plainly(numbers, factors, one).view(values.dtype)
        np.testing.assert_array_equal(reduce(values, factors, method), expected)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.integers(2, 7))
def test_the_mode_of_any_list_is_its_most_frequent_value(values: list[int], factor: int) -> None:
    array = np.array(values, "i2")
    np.testing.assert_array_equal(reduce(array, (factor,), "mode"), plainly(array, (factor,), mode_of))


def test_nearest_takes_the_first_element_of_every_block_of_any_type() -> None:
    values = np.array([["a", "bc", "d"], ["e", "f", "g"], ["h", "i", "j"]])
    assert reduce(values, (2, 2), "nearest").tolist() == [["a", "d"], ["h", "j"]]


def test_nan_counts_unless_it_is_said_to_be_missing() -> None:
    values = np.array([1.0, np.nan, np.nan, np.nan, 4.0])
    np.testing.assert_array_equal(reduce(values, (2,), "mean"), [np.nan, np.nan, 4.0])
    np.testing.assert_array_equal(reduce(values, (2,), "mean", missing=np.nan), [1.0, np.nan, 4.0])
    np.testing.assert_array_equal(reduce(values, (2,), "max", missing=np.nan), [1.0, np.nan, 4.0])
    np.testing.assert_array_equal(reduce(values, (2,), "mode"), [1.0, np.nan, 4.0])
    np.testing.assert_array_equal(reduce(values, (5,), "mode"), [np.nan])
    np.testing.assert_array_equal(reduce(values, (5,), "mode", missing=np.nan), [1.0])


@pytest.mark.parametrize("method", ["mean", "max", "mode", "gaussian"])
def test_a_fill_value_that_is_missing_does_not_count_and_fills_empty_blocks(method: Any) -> None:
    values = np.array([[5, -1, -1, -1], [-1, -1, -1, -1]], "i2")
    assert reduce(values, (2, 2), method, missing=-1).ravel()[0] == 5
    if method != "gaussian":  # whose blocks overlap
        assert reduce(values, (2, 2), method, missing=-1).tolist() == [[5, -1]]


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "float8_e4m3fn"])
@pytest.mark.parametrize("method", ["mean", "max", "mode"])
def test_small_number_types_are_reckoned_with_as_numbers(dtype: str, method: Any) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="the extra ml is not installed")
    values = np.array([[1, 3], [1, 3]], getattr(ml_dtypes, dtype))
    made = reduce(values, (2, 2), method)
    assert made.dtype == values.dtype
    assert float(made[0, 0]) == {"mean": 2, "max": 3, "mode": 1}[method]


def gaussian_plainly(values: Any, factor: int) -> Any:
    """Along one axis: weights by distance from the centre of each block, σ a third of the factor, to 4 σ."""
    out = []
    for block in range(-(-len(values) // factor)):
        distance = np.arange(len(values)) - (block * factor + (factor - 1) / 2)
        weights = np.where(abs(distance) <= 4 * factor / 3 + 1e-9, np.exp(-(distance**2) / (2 * (factor / 3) ** 2)), 0)
        out.append((values * weights).sum() / weights.sum())
    return np.array(out)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_a_gaussian_weighs_by_distance_from_the_centre_of_each_block(factor: int) -> None:
    values = np.random.default_rng(4).normal(size=(23, 17))
    by_axis = np.apply_along_axis(gaussian_plainly, 1, np.apply_along_axis(gaussian_plainly, 0, values, factor), factor)
    np.testing.assert_allclose(reduce(values, (factor, factor), "gaussian"), by_axis, rtol=1e-12)
    np.testing.assert_allclose(reduce(np.full((9, 7), 3.5), (factor, factor), "gaussian"), 3.5)


@pytest.mark.parametrize("method", ["mean", "max", "mode", "nearest", "gaussian"])
@pytest.mark.parametrize("memory", [1, 400, 10_000])
@pytest.mark.parametrize("jobs", [1, 3])
def test_pieces_give_the_same_values_as_the_whole(method: Any, memory: int, jobs: int) -> None:
    values = np.random.default_rng(5).integers(0, 50, (4, 23, 19)).astype("f8")
    group = group_with(values, chunks=(2, 4, 5))
    made = build_pyramid(group, "0", levels=3, factors=(1, 2, 3), method=method, memory=memory, jobs=jobs)
    assert [level.shape for level in made] == [(4, 23, 19), (4, 12, 7), (4, 6, 3), (4, 3, 1)]
    expected = values
    for level in made[1:]:
        expected = reduce(expected, level.factors, method)
        np.testing.assert_allclose(group[level.name][...], expected, rtol=1e-12)


def test_levels_keep_data_type_chunks_shards_codecs_and_attributes() -> None:
    group = tessarr.create_group(MemoryStore())
    base = group.create_array(
        "0", shape=(64, 64), dtype="u2", chunks=(8, 8), shards=(16, 16),
        compressors={"name": "gzip", "configuration": {"level": 4}},
        fill_value=7, attributes={"units": "K"}, dimension_names=("y", "x"),
    )  # fmt: skip
    build_pyramid(group, "0", levels=1)
    level = array_of(group["1"])
    mine, theirs = base.metadata.to_dict(), level.metadata.to_dict()
    assert theirs.pop("shape") == (32, 32)
    assert mine.pop("shape") == (64, 64)
    assert mine == theirs
    assert (level[...] == 7).all()


def test_memory_is_bounded_by_pieces_and_not_by_the_array() -> None:
    group = tessarr.create_group(MemoryStore())
    group.create_array("0", shape=(4096, 4096), dtype="f4", chunks=(128, 128), fill_value=0)[:64] = 1.0
    build_pyramid(group, "0", levels=1)
    tracemalloc.start()
    build_pyramid(group, "0", levels=1, memory=1 << 20, overwrite=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 << 20, f"{peak / 2**20:.1f} MiB for an array of 64 MiB"


# -- which levels ------------------------------------------------------------------------------------------------------


def test_levels_end_when_no_scaled_axis_is_longer_than_min_size() -> None:
    group = group_with(np.zeros((3, 100, 30), "u1"), dimension_names=("c", "y", "x"))
    made = build_pyramid(group, "0", min_size=20)
    assert [level.shape for level in made] == [(3, 100, 30), (3, 50, 15), (3, 25, 8), (3, 13, 4)]


def test_an_axis_that_has_shrunk_to_one_stays_there_with_its_scale() -> None:
    group = group_with(np.zeros((2, 16), "u1"), dimension_names=("y", "x"))
    made = build_pyramid(group, "0", levels=3)
    assert [level.total for level in made] == [(1, 1), (2, 2), (2, 4), (2, 8)]


@pytest.mark.parametrize(
    ("first", "names", "expected"),
    [
        ("0", None, "1"),
        ("s0", None, "s1"),
        ("image", None, "image_1"),
        ("image", ["half"], "half"),
        ("a/0", None, "a/1"),
    ],
)
def test_levels_are_named_after_the_array(first: str, names: Any, expected: str) -> None:
    group = tessarr.create_group(MemoryStore())
    group.create_array(first, data=np.zeros((4, 4)))
    assert build_pyramid(group, first, levels=1, names=names)[1].name == expected
    assert expected in group


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"factors": {"q": 2}}, "not dimensions"),
        ({"factors": (2,)}, "2 factors"),
        ({"factors": 0}, "at least 1"),
        ({"method": "median"}, "unknown method"),
        ({"method": "mean", "labels": True}, "do not exist"),
        ({"levels": 9}, "no axis can shrink"),
        ({"levels": 2, "names": ["a"]}, "names for 1"),
        ({"levels": 1, "names": ["0"]}, "different names"),
        ({"convention": "ome-0.3"}, "unknown convention"),
        ({"scale": (1, 1)}, "OME-Zarr only"),
        ({"convention": "ome-0.5"}, "no dimension names"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused_before_anything_is_written(choice: Any, message: str) -> None:
    group = group_with(np.zeros((8, 8)))
    before = sorted(group.store.list())
    with pytest.raises(ValueError, match=message):
        build_pyramid(group, "0", **{"levels": 1, **choice})
    assert sorted(group.store.list()) == before


def test_what_cannot_be_a_pyramid_is_refused_with_a_typed_error(tmp_path: Path) -> None:
    group = group_with(np.zeros((8, 8)))
    with pytest.raises(ArrayNotFoundError):
        build_pyramid(group, "nothing")
    group.create_array("words", data=np.array(["a", "b", "c"]))
    with pytest.raises(UnsupportedOperationError, match="does not support"):
        build_pyramid(group, "words", levels=1)
    group.create_array("1", data=np.zeros(3))
    with pytest.raises(ContainsArrayError):
        build_pyramid(group, "0", levels=1)
    assert group["1"].shape == (3,)
    tessarr.create_group(tmp_path / "g").create_array("0", data=np.zeros((4, 4)))
    with pytest.raises(ReadOnlyError):
        build_pyramid(tessarr.open_group(tmp_path / "g", mode="r"), "0", levels=1)
    old = group_with(np.zeros((8, 8)), zarr_format=2)
    with pytest.raises(UnsupportedOperationError, match="Zarr v3"):
        build_pyramid(old, "0", levels=1, convention="ome-0.5", axes=[ome.Axis("y", "space"), ome.Axis("x", "space")])
    with pytest.raises(UnsupportedOperationError, match='"/"'):
        build_pyramid(old, "0", levels=1, convention="ome-0.4", axes=[ome.Axis("y", "space"), ome.Axis("x", "space")])


# -- stopping and going on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("count", [1, 7, 20])
def test_a_stopped_run_is_taken_up_and_does_not_repeat_what_is_done(count: int, jobs: int) -> None:
    values = np.arange(64 * 64, dtype="f4").reshape(64, 64)
    group = group_with(values, chunks=(8, 8))
    options: dict[str, Any] = {"levels": 3, "memory": 1, "jobs": jobs}
    with pytest.raises(StoppedError):
        build_pyramid(group, "0", progress=stop_after(count), **options)
    assert "multiscales" not in group.attrs
    assert [key for key in group.store.list() if key.endswith(".partial")] == [".0.pyramid.partial"]
    marked = group["1"]
    marked[:8, :8] = -1.0  # a piece that is done: were it made again, this would be gone
    calls: list[tuple[int, int]] = []
    build_pyramid(group, "0", progress=lambda done, total, _: calls.append((done, total)), **options)
    assert (group["1"][:8, :8] == -1).all()
    assert calls[-1] == (calls[-1][1], (32 * 32 + 16 * 16 + 8 * 8) * 4)
    np.testing.assert_array_equal(group["1"][8:], reduce(values, (2, 2), "mean")[8:])
    assert not [key for key in group.store.list() if key.endswith(".partial")]


@pytest.mark.parametrize("change", [{"method": "max"}, {"resume": False}, {"memory": 10_000}, {"levels": 1}])
def test_other_work_than_the_one_that_was_stopped_begins_anew_over_its_levels(change: Any) -> None:
    values = np.arange(32 * 32, dtype="f4").reshape(32, 32)
    group = group_with(values, chunks=(8, 8))
    options: dict[str, Any] = {"levels": 2, "memory": 1, "method": "mean"}
    with pytest.raises(StoppedError):
        build_pyramid(group, "0", progress=stop_after(2), **options)
    group["1"][:8, :8] = -1.0
    build_pyramid(group, "0", **{**options, **change})
    np.testing.assert_array_equal(group["1"][...], reduce(values, (2, 2), change.get("method", "mean")))


def test_arrays_that_no_stopped_run_made_are_not_overwritten_when_going_on() -> None:
    group = group_with(np.arange(32 * 32.0).reshape(32, 32), chunks=(8, 8))
    with pytest.raises(StoppedError):
        build_pyramid(group, "0", levels=1, memory=1, progress=stop_after(2))
    group.create_array("2", data=np.arange(3))
    with pytest.raises(ContainsArrayError):
        build_pyramid(group, "0", levels=2, memory=1)
    assert group["2"][...].tolist() == [0, 1, 2]


def test_a_note_that_was_cut_off_is_no_note() -> None:
    group = group_with(np.zeros((8, 8)))
    group.store.set(".0.pyramid.partial", b'{"work": "')
    build_pyramid(group, "0", levels=1)
    assert not group.store.exists(".0.pyramid.partial")


def test_nothing_but_levels_and_attributes_is_left_behind(tmp_path: Path) -> None:
    tessarr.create_group(tmp_path / "g").create_array("0", data=np.ones((8, 8)), chunks=(4, 4))
    build_pyramid(tmp_path / "g", "0", levels=1)
    names = {path.relative_to(tmp_path / "g").parts[0] for path in (tmp_path / "g").rglob("*")}
    assert names == {"zarr.json", "0", "1"}
    np.testing.assert_array_equal(tessarr.open_array(tmp_path / "g" / "1", mode="r")[...], np.ones((4, 4)))


def test_consolidated_metadata_above_a_pyramid_is_kept_in_step() -> None:
    group = group_with(np.ones((8, 8)))
    tessarr.consolidate_metadata(group.store)
    build_pyramid(group, "0", levels=1)
    again = tessarr.open_group(group.store, mode="r", use_consolidated=True)
    assert again["1"].shape == (4, 4)
    assert "multiscales" in again.attrs


# -- descriptions ------------------------------------------------------------------------------------------------------


def problems(group: Any) -> list[str]:
    nodes = {"": group.metadata, **{path: node.metadata for path, node in group.members(max_depth=None)}}
    return [f"{path}: {problem}" for path, problem in check_hierarchy(nodes)]


@pytest.mark.spec("OGC-19")
def test_multiscale_arrays_list_the_levels_from_the_highest_resolution_on() -> None:
    group = group_with(np.ones((8, 8)))
    build_pyramid(group, "0", levels=2, name="dem")
    assert group.attrs["multiscales"][0]["datasets"] == [{"path": "0"}, {"path": "1"}, {"path": "2"}]
    found = multiscales.read(group.attrs.asdict())[0]
    assert (found.version, found.name, found.type) == ("0.1", "dem", "mean")
    assert not problems(group)


def test_pyramids_of_several_arrays_share_a_group_and_a_new_one_replaces_its_own() -> None:
    group = group_with(np.ones((8, 8)))
    group.create_array("other", data=np.ones((8, 8)))
    build_pyramid(group, "0", levels=2)
    build_pyramid(group, "other", levels=1)
    build_pyramid(group, "0", levels=1, overwrite=True)
    assert [item.paths for item in multiscales.read(group.attrs.asdict())] == [("other", "other_1"), ("0", "1")]


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("names", [("y", "x"), ("t", "c", "z", "y", "x")])
def test_ome_attributes_are_valid_by_the_published_schema(version: Any, names: tuple[str, ...]) -> None:
    old = version == "0.4"
    convention: Literal["ome-0.4", "ome-0.5"] = "ome-0.4" if old else "ome-0.5"
    extra: Any = {"chunk_key_encoding": {"name": "v2", "separator": "/"}} if old else {"dimension_names": names}
    group = group_with(np.ones((4,) * len(names), "u1"), zarr_format=2 if old else 3, **extra)
    axes = [
        ome.Axis(n, {"t": "time", "c": "channel"}.get(n, "space"), "micrometer" if n in "zyx" else None) for n in names
    ]
    build_pyramid(
        group, "0", levels=1, convention=convention, axes=axes, scale=[0.5] * len(names), name="cells",
        factors=[2 if n in "yx" else 1 for n in names],
    )  # fmt: skip
    attributes = group.attrs.asdict()
    schema(f"ome-{version}", "image.schema").validate(attributes)
    schema(f"ome-{version}", "strict_image.schema").validate(attributes)
    image = ome.read(attributes)[0]
    expected = tuple(1.0 if n in "yx" else 0.5 for n in names)
    assert image.levels[1].scale == expected
    assert image.levels[1].translation == tuple(0.25 if n in "yx" else 0.0 for n in names)
    assert not problems(group)


def test_translations_of_ome_are_the_positions_of_first_elements() -> None:
    group = group_with(np.ones((27, 27)), dimension_names=("y", "x"))
    made = build_pyramid(group, "0", levels=2, factors=3, convention="ome-0.5", scale=(2, 1), translation=(10, 0))
    image = ome.read(group.attrs.asdict())[0]
    for level, stated in zip(made, image.levels, strict=True):
        # The centre of the elements of the first level that the first element of this one covers.
        assert stated.translation in (None, tuple(o + s * (t - 1) / 2 for o, s, t in zip((10, 0), (2, 1), level.total)))
        assert stated.scale == tuple(s * t for s, t in zip((2.0, 1.0), level.total, strict=True))
    assert image.levels[2].translation == (18.0, 4.0)
    build_pyramid(group, "0", levels=1, method="nearest", convention="ome-0.5", overwrite=True)
    assert ome.read(group.attrs.asdict())[0].levels[1].translation == (10.0, 0.0), "kept, and nothing moves"


def test_what_an_ome_image_says_already_is_kept() -> None:
    group = group_with(np.ones((8, 8), "u1"), dimension_names=("y", "x"))
    axes = [ome.Axis("y", "space", "meter"), ome.Axis("x", "space", "meter")]
    before = ome.write(axes, [ome.Level("0", (3.0, 4.0))], version="0.5", name="mine", omero={"channels": []})
    group.update_attributes({**before, "other": 1})
    build_pyramid(group, "0", levels=1, convention="ome-0.5")
    image = ome.read(group.attrs.asdict())[0]
    assert (image.name, image.axes, image.omero) == ("mine", tuple(axes), {"channels": []})
    assert [level.scale for level in image.levels] == [(3.0, 4.0), (6.0, 8.0)]
    assert group.attrs["other"] == 1
    assert len(group.attrs["ome"]["multiscales"]) == 1


def test_a_label_image_is_marked_listed_and_never_mixed() -> None:
    root = tessarr.create_group(MemoryStore())
    group = root.create_group("labels/cells")
    values = np.zeros((9, 9), "u4")
    values[2:7, 2:7] = 40_000
    values[5:, 5:] = 7
    group.create_array("0", data=values, chunks=(4, 4), dimension_names=("y", "x"))
    build_pyramid(group, "0", levels=2, labels=True, convention="ome-0.5")
    np.testing.assert_array_equal(array_of(group["1"])[...], plainly(values, (2, 2), mode_of))
    schema("ome-0.5", "label.schema").validate(group.attrs.asdict())
    assert ome.kinds(group.attrs.asdict()) == ("image", "label")
    assert ome.read_labels(root["labels"].attrs.asdict()) == ("cells",)


def test_the_layout_of_the_framework_is_valid_by_the_published_schema_and_says_how_levels_lie() -> None:
    group = group_with(np.ones((8, 8)), dimension_names=("y", "x"))
    build_pyramid(group, "0", levels=2, convention="zarr-conventions")
    document = {"zarr_format": 3, "node_type": "group", "attributes": group.attrs.asdict()}
    schema("zarr-conventions", "multiscales/schema.json").validate(document)
    found = layout.read(group.attrs.asdict())
    assert [(level.asset, level.derived_from) for level in found] == [("0", None), ("1", "0"), ("2", "1")]
    assert [(level.scale, level.translation) for level in found[1:]] == [((2.0, 2.0), (0.5, 0.5))] * 2
    assert found[1].resampling_method == "average"
    assert not problems(group)


def test_a_place_is_carried_over_to_every_level() -> None:
    group = tessarr.create_group(MemoryStore())
    where = spatial.Spatial(dimensions=("y", "x"), transform=(10.0, 0, 500.0, 0, -10.0, 900.0), shape=(9, 8))
    group.create_array(
        "0", data=np.ones((9, 8)), chunks=(4, 4), dimension_names=("y", "x"), attributes=spatial.write(where)
    )
    build_pyramid(group, "0", levels=1, convention="zarr-conventions")
    entry = group.attrs["multiscales"]["layout"][1]
    assert entry["spatial:transform"] == [20.0, 0, 500.0, 0, -20.0, 900.0]
    assert entry["spatial:shape"] == [5, 4]
    assert entry["transform"] == {"scale": [2.0, 2.0], "translation": [0.0, 0.0]}
    own = spatial.read(group["1"].attrs.asdict())
    assert own is not None
    assert (own.transform, own.shape) == ((20.0, 0, 500.0, 0, -20.0, 900.0), (5, 4))
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "dimension_names": ["y", "x"],
        "attributes": group["1"].attrs.asdict(),
    }
    schema("zarr-conventions", "spatial/schema.json").validate(document)
    assert not problems(group)


def test_multiscales_of_another_convention_are_not_overwritten() -> None:
    group = group_with(np.ones((8, 8)), dimension_names=("y", "x"))
    build_pyramid(group, "0", levels=1, convention="zarr-conventions")
    before = group.attrs.asdict()
    with pytest.raises(BaseZarrError, match="another convention"):
        build_pyramid(group, "0", levels=1, overwrite=True)
    assert group.attrs.asdict() == before


def test_other_libraries_read_the_levels(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="the peers are not installed")
    values = np.random.default_rng(6).integers(0, 200, (21, 33)).astype("u1")
    tessarr.create_group(tmp_path / "g").create_array("0", data=values, chunks=(8, 8), dimension_names=("y", "x"))
    made: list[Level] = build_pyramid(tmp_path / "g", "0", levels=2, convention="ome-0.5")
    theirs = zarr.open_group(tmp_path / "g", mode="r")
    for before, level in pairwise(made):
        np.testing.assert_array_equal(theirs[level.name][...], reduce(theirs[before.name][...], (2, 2), "mean"))


def test_a_pyramid_beside_other_arrays_is_no_contradiction_of_their_dimensions() -> None:
    group = group_with(np.ones((8, 8)), dimension_names=("y", "x"))
    group.create_array("y", data=np.arange(8.0), dimension_names=("y",))
    build_pyramid(group, "0", levels=1)
    assert not problems(group)
    group.create_array("wrong", data=np.arange(3.0), dimension_names=("y",))
    assert len(problems(group)) == 1
