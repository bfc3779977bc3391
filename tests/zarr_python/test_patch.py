"""zarr-python gives, raises and stores the same with the patch as without it, and says what it could not be helped with."""

from __future__ import annotations

import asyncio
import copy
import re
import subprocess
import sys
import threading
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from zarr.codecs import GzipCodec
from zarr.storage import FsspecStore

import tessarr
from tessarr import zarr_python
from tests.conftest import PYPROJECT
from tests.narrow import numpy_of
from tests.zarr_python.layouts import Layout, errs, kept, layouts, outcome, selections, values

KINDS = ("bracket", "basic", "orthogonal", "coordinate", "mask", "block")
FORMS = ("scalar", "same", "list", "other dtype", "row", "wrong")


def get(z: Any, kind: str, selection: Any) -> Any:
    selection = copy.deepcopy(selection)  # zarr-python adds the length to negative positions in the caller's array
    return z[selection] if kind == "bracket" else getattr(z, f"get_{kind}_selection")(selection)


def put(z: Any, kind: str, selection: Any, value: Any) -> None:
    selection = copy.deepcopy(selection)
    if kind == "bracket":
        z[selection] = value
    else:
        getattr(z, f"set_{kind}_selection")(selection, value)


@st.composite
def cases(draw: Any) -> tuple[Layout, str, Any]:
    kind = draw(st.sampled_from(KINDS))
    layout = draw(layouts(min_ndim=0 if kind in ("bracket", "basic") else 1))
    form = (
        draw(st.sampled_from(KINDS[1:5]))
        if kind == "bracket" and layout.shape
        else "basic"
        if kind == "bracket"
        else kind
    )
    return layout, kind, draw(selections(layout.shape, form))


@settings(max_examples=150, deadline=None)
@given(cases())
def test_reading_is_the_same(case: tuple[Layout, str, Any]) -> None:
    layout, kind, selection = case
    z = layout.make()
    plain = outcome(lambda: get(z, kind, selection))
    with zarr_python.patch():
        assert outcome(lambda: get(z, kind, selection)) == plain
        assert outcome(lambda: get(z, kind, selection)) == plain, "the second time, when it is bound"


@settings(max_examples=150, deadline=None)
@given(cases(), st.sampled_from(FORMS), st.integers(0, 9))
def test_writing_is_the_same(case: tuple[Layout, str, Any], form: str, seed: int) -> None:
    layout, kind, selection = case
    assume(not errs(layout, kind) and not selects_twice(layout.shape, kind, selection))
    a, b = layout.make(), layout.make()
    value = written_to(a, kind, selection, form, seed)
    plain = outcome(lambda: put(a, kind, selection, value))
    with zarr_python.patch():
        assert outcome(lambda: put(b, kind, selection, value)) == plain
    if plain == ("None",):
        assert kept(b) == kept(a)


def selects_twice(shape: tuple[int, ...], kind: str, selection: Any) -> bool:
    """Whether an element is selected more than once. In NumPy, and with the patch, it gets the last of its values.

    In zarr-python it gets one that depends on a sort that is not stable.
    """
    if kind == "block" or not shape:
        return False
    numbers = zarr.create_array({}, data=np.arange(np.prod(shape)).reshape(shape))
    try:
        selected = np.asarray(get(numbers, kind, selection))
    except Exception:  # it is refused
        return False
    return len(np.unique(selected)) < selected.size


def written_to(z: Any, kind: str, selection: Any, form: str, seed: int) -> Any:
    """A value of `form` for what `selection` selects, and for a scalar where it selects nothing."""
    try:
        shape = np.shape(get(z, kind, selection))
    except Exception:
        shape = ()
    return written(z.dtype, shape, form, seed)


def written(dtype: np.dtype[Any], shape: tuple[int, ...], form: str, seed: int) -> Any:
    if form == "scalar":
        return np.asarray(values(dtype, (), seed))[()]
    if form == "row":
        shape = shape[-1:]
    if form == "wrong":
        shape = (*shape, 2)
    array = values(dtype, shape, seed)
    if form == "list" and dtype.kind in "biuf":
        return array.tolist()
    return array.astype("f8") if form == "other dtype" and dtype.kind in "iu" else array


@settings(max_examples=60, deadline=None)
@given(cases())
def test_asynchronous_reading_is_the_same(case: tuple[Layout, str, Any]) -> None:
    layout, kind, selection = case
    z = layout.make().async_array
    call = {
        "orthogonal": z.get_orthogonal_selection,
        "mask": z.get_mask_selection,
        "coordinate": z.get_coordinate_selection,
    }.get(kind, z.getitem)
    plain = outcome(lambda: asyncio.run(call(copy.deepcopy(selection))))
    with zarr_python.patch():
        assert outcome(lambda: asyncio.run(call(copy.deepcopy(selection)))) == plain


def test_asynchronous_writing() -> None:
    z = zarr.create_array({}, shape=(6, 6), chunks=(2, 3), dtype="i4")
    with zarr_python.patch():
        asyncio.run(z.async_array.setitem((slice(1, 4), 2), np.array([1, 2, 3])))
        assert zarr_python.stats() == (0, 1, {})
    assert numpy_of(z[:, 2]).tolist() == [0, 1, 2, 3, 0, 0]


def test_a_changed_shape_is_seen() -> None:
    z = zarr.create_array({}, shape=(4,), chunks=(2,), dtype="i4", fill_value=5)
    with zarr_python.patch(strict=True):
        z[...] = 1
        z.resize((7,))
        assert numpy_of(z[...]).tolist() == [1, 1, 1, 1, 5, 5, 5]
        z.append(np.arange(2, dtype="i4"))
        assert numpy_of(z[-3:]).tolist() == [5, 0, 1]


@pytest.mark.parametrize("shards", [None, (4,)])
def test_what_lies_beyond_the_edge_is_kept_where_zarr_python_keeps_it(shards: Any) -> None:
    def work() -> list[int]:
        z = zarr.create_array({}, shape=(4,), chunks=(2,) if shards else (4,), shards=shards, dtype="i2")
        z[:] = [1, 2, 3, 4]
        z.resize((3,))
        z[:] = [9, 9, 9]
        z.resize((4,))
        found: list[int] = numpy_of(z[:]).tolist()
        return found

    plain = work()
    with zarr_python.patch(strict=True):
        assert work() == plain
    with zarr.config.set({"codec_pipeline.path": "tessarr.zarr_python.pipeline.TessarrCodecPipeline"}):
        assert work() == plain


def test_a_local_store_that_is_moved_is_followed(tmp_path: Path) -> None:
    store = zarr.storage.LocalStore(tmp_path / "a")
    z = zarr.create_array(store, shape=(4,), dtype="i4")
    with zarr_python.patch(strict=True):
        z[...] = 3
        asyncio.run(store.move(tmp_path / "b"))
        assert numpy_of(z[...]).tolist() == [3] * 4


def test_many_writers_in_zarr_pythons_loop_wait_for_no_thread_of_it() -> None:
    # Writing parts of chunks of a store that is called through the loop blocks; its own threads must stay free meanwhile.
    z = zarr.create_array(
        FsspecStore.from_url("memory://many-writers"), shape=(400,), chunks=(2,), dtype="i4"
    ).async_array

    async def work() -> None:
        await asyncio.gather(*(z.setitem(slice(i, i + 1), i) for i in range(0, 400, 2)))

    with zarr_python.patch(strict=True):
        zarr.core.sync.sync(work())
        found = zarr.core.sync.sync(z.getitem(...))
    assert numpy_of(found).tolist() == [i if i % 2 == 0 else 0 for i in range(400)]


# -- what is left to zarr-python -----------------------------------------------------------------------------------------


class Doubled(zarr.Array):  # type: ignore[type-arg]
    def __getitem__(self, selection: Any) -> Any:
        return numpy_of(super().__getitem__(selection)) * 2


class Seen(zarr.storage.MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        self.asked.append(key)
        return await super().get(key, *args, **kwargs)


def test_methods_of_subclasses_are_called() -> None:
    z = Doubled(zarr.full(store={}, shape=(3,), fill_value=4).async_array)
    with zarr_python.patch():
        assert z[:2].tolist() == [8, 8]
        assert "its class Doubled may add to that" in zarr_python.explain(z)


def test_stores_of_other_classes_are_asked_themselves() -> None:
    store = Seen()
    z = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="i4")
    store.asked.clear()
    with zarr_python.patch():
        z[...]
        (why,) = zarr_python.stats().fallbacks
    assert store.asked == ["c/0", "c/1"]
    assert "Seen, which may do more than hold bytes" in why


def test_every_fallback_is_counted_with_its_reason() -> None:
    z = zarr.create_array({}, shape=(4,), chunks=(2,), dtype=[("a", "i4"), ("b", "i4")], zarr_format=2)
    z[...] = np.ones(4, z.dtype)
    out = zarr.core.buffer.cpu.NDBuffer.create(shape=(4,), dtype=z.dtype, order="C")
    with zarr_python.patch():
        with pytest.raises(TypeError):  # zarr-python 3 takes fields, and cannot read them
            z["a"]  # type: ignore[index]
        z.get_basic_selection(out=out)
        z[:3]
        assert zarr_python.stats() == (
            1,
            0,
            {"fields of a structured type are selected": 1, "the result goes to an out= argument": 1},
        )
        assert str(zarr_python.stats()).startswith("1 reads and 0 writes by tessarr, 2 by zarr-python")


def test_another_pipeline_is_respected() -> None:
    z = zarr.create_array({}, shape=(4,), chunks=(2,), dtype="i4")
    object.__setattr__(z.async_array, "codec_pipeline", object())
    assert zarr_python.explain(z) == "zarr-python: its codec pipeline is a builtins.object"


def test_strict_says_what_could_not_be_served() -> None:
    z = zarr.create_array(Seen(), shape=(4,), dtype="i4")
    with zarr_python.patch(strict=True), pytest.raises(zarr_python.FallbackError, match="may do more than hold bytes"):
        z[...]


def test_strict_shows_the_error_of_the_engine(tmp_path: Path) -> None:
    z = zarr.create_array(tmp_path, shape=(4,), dtype="i4", compressors=GzipCodec())
    z[...] = 1
    (tmp_path / "c" / "0").write_bytes(b"no gzip")
    with zarr_python.patch():
        with pytest.raises(Exception, match="gzip") as plain:
            z[...]
        assert not isinstance(plain.value, tessarr.errors.TessarrError)
    with zarr_python.patch(strict=True), pytest.raises(tessarr.errors.CodecError):
        z[...]


# -- applying and taking back --------------------------------------------------------------------------------------------


def methods() -> list[Any]:
    return [vars(zarr.Array)[name] for name in dir(zarr.Array) if "selection" in name] + [
        vars(zarr.Array)["__getitem__"],
        zarr.core.array._get_selection,
    ]


def test_patching_twice_is_patching_once() -> None:
    before = methods()
    zarr_python.patch()
    during = methods()
    with zarr_python.patch():
        assert methods() == during != before
    assert zarr_python.is_patched(), "it was there before the with statement"
    zarr_python.unpatch()
    zarr_python.unpatch()
    assert methods() == before


def test_the_last_of_several_blocks_undoes_the_patch() -> None:
    first, second = zarr_python.patch(), zarr_python.patch()
    with second:
        with first:
            pass
        assert zarr_python.is_patched(), "the other block has not ended"
        with zarr_python.patch():
            zarr_python.unpatch()
            assert not zarr_python.is_patched()
    zarr_python.patch()
    assert zarr_python.is_patched()
    zarr_python.unpatch()


def test_a_second_call_leaves_strictness_as_it_is_unless_it_says_so() -> None:
    array = zarr.create_array(zarr.storage.LoggingStore(zarr.storage.MemoryStore()), shape=3, dtype="i4")  # not bound
    with zarr_python.patch(strict=True):
        zarr_python.patch()
        with pytest.raises(zarr_python.FallbackError):
            array[:]
        with zarr_python.patch(strict=False):
            np.testing.assert_array_equal(np.asarray(array[:]), [0, 0, 0])
        with pytest.raises(zarr_python.FallbackError):
            array[:]
    assert zarr_python.is_patched(), "a call without `with` holds it"
    zarr_python.unpatch()


def test_unpatch_refuses_where_another_package_patched_after(monkeypatch: pytest.MonkeyPatch) -> None:
    zarr_python.patch()
    ours = zarr.Array.__getitem__
    monkeypatch.setattr(zarr.Array, "__getitem__", lambda self, selection: ours(self, selection))
    with pytest.raises(zarr_python.PatchError, match=r"Array.__getitem__ was replaced after the patch, by tests"):
        zarr_python.unpatch()
    assert zarr_python.is_patched()
    monkeypatch.undo()
    zarr_python.unpatch()


def test_the_releases_that_are_patched_are_those_that_make_tries() -> None:
    makefile = PYPROJECT.with_name("Makefile").read_text(encoding="utf-8")
    (releases,) = re.findall(r"^RELEASES \?= (.*)$", makefile, re.MULTILINE)
    assert tuple(releases.split()) == zarr_python.TESTED


def test_a_release_that_was_not_tested_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "3.99.0")
    with pytest.raises(zarr_python.PatchError, match=r"tested with zarr-python 3.1.6, .*, and this is 3.99.0"):
        zarr_python.patch()
    with zarr_python.patch(force=True):
        assert zarr_python.is_patched()


def test_threads_may_patch_and_read_at_once() -> None:
    z = zarr.create_array({}, shape=(40, 40), chunks=(4, 4), dtype="i4")
    z[...] = expected = np.arange(1600, dtype="i4").reshape(40, 40)
    wrong: list[Any] = []

    def work(number: int) -> None:
        for i in range(30):
            if number == 0:
                zarr_python.patch()
                zarr_python.unpatch()
            elif not np.array_equal(z[i : i + 9], expected[i : i + 9]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_importing_patches_nothing() -> None:
    code = "import zarr; f = zarr.Array.__getitem__; import tessarr.zarr_python; assert zarr.Array.__getitem__ is f"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_program_is_run_with_the_patch(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, zarr\nz = zarr.ones(store={}, shape=(3,))\nprint(z[:2].tolist(), sys.argv[1:])\n")
    run = subprocess.run(
        [sys.executable, "-m", "tessarr.zarr_python", "--stats", str(script), "x"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout == "[1.0, 1.0] ['x']\n"
    assert "1 reads and" in run.stderr


# -- without the patch ---------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(layouts())
def test_accelerate_reads_the_same(layout: Layout) -> None:
    z = layout.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that zarr-python gave data types before they were registered
        fast = tessarr.accelerate(z)
    assert fast.store is z.store
    assert fast.shape == z.shape
    plain, ours = outcome(lambda: z[...]), outcome(lambda: fast[...])
    assert ours == plain


def test_accelerate_serves_stores_that_the_patch_leaves_alone() -> None:
    store = Seen()
    z = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="i4")
    fast = tessarr.accelerate(z.async_array)
    fast[1:3] = 5
    assert numpy_of(z[...]).tolist() == [0, 5, 5, 0]


def test_accelerate_takes_arrays_of_zarr_python_only() -> None:
    with pytest.raises(TypeError, match=r"expected an array of zarr-python, got numpy\.ndarray"):
        tessarr.accelerate(np.zeros(3))


def test_an_array_whose_document_zarr_python_corrects_is_left_to_it() -> None:
    """zarr-python 3.4 marks such metadata, and stores the correction before the first write."""
    z = zarr.create_array({}, shape=(4,), dtype="i4")
    object.__setattr__(z.metadata, "_stored_document", {"chunks": [0]})
    assert zarr_python.explain(z).startswith("zarr-python: its document is invalid")
    z = zarr.create_array({}, shape=(4,), dtype="i4")
    assert zarr_python.explain(z).startswith("tessarr: ")


def test_functions_of_zarr_python_that_are_replaced_run_in_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from zarr.codecs import ShardingCodec

    calls = []
    name = next(name for name in ("_load_shard_index_maybe", "_decode_single") if hasattr(ShardingCodec, name))
    original = getattr(ShardingCodec, name)

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return original(*arguments, **options)

    with zarr_python.patch():
        z = zarr.create_array({}, shape=(8,), chunks=(2,), shards=(4,), dtype="i4")
        z[:] = 1
        with monkeypatch.context() as during:
            during.setattr(ShardingCodec, name, counted)
            z = zarr.open_array(z.store)
            assert zarr_python.explain(z) == f"zarr-python: ShardingCodec.{name} of zarr-python was replaced"
            assert numpy_of(z[1:6]).tolist() == [1] * 5
            assert calls
        assert zarr_python.explain(zarr.open_array(z.store)).startswith("tessarr: ")


def test_a_method_that_a_store_object_has_of_its_own_runs() -> None:
    store = zarr.storage.MemoryStore()
    with zarr_python.patch():
        z = zarr.create_array(store, shape=(8,), chunks=(2,), dtype="i4", fill_value=3)
        assert zarr_python.explain(z).startswith("tessarr: ")
        keys = []

        async def get(key: str, *rest: Any, **options: Any) -> Any:
            keys.append(key)

        store.get = get  # type: ignore[method-assign]
        assert zarr_python.explain(z) == "zarr-python: MemoryStore.get of zarr-python was replaced"
        assert numpy_of(z[1:4]).tolist() == [3, 3, 3]
        assert keys == ["c/0", "c/1"]
        del store.get
        assert zarr_python.explain(z).startswith("tessarr: ")


SHARD_OF_PLACES = np.arange(3 * 2 * 5, dtype="u1").reshape(3, 2, 5) + 1


@pytest.mark.parametrize("nested", [False, True])
def test_a_shard_has_the_inner_chunks_in_the_order_of_zarr_python(nested: bool) -> None:
    from zarr.codecs import BytesCodec, ShardingCodec

    stored = []
    for patched in (False, True):
        store = zarr.storage.MemoryStore()
        inner = ShardingCodec(chunk_shape=(1, 1, 1), codecs=[BytesCodec()])
        codec = ShardingCodec(chunk_shape=(3, 2, 5), codecs=[inner]) if nested else inner
        shape = (3, 2, 10) if nested else (3, 2, 5)
        z = zarr.create_array(store, shape=shape, chunks=shape, dtype="u1", serializer=codec, compressors=None)
        values = np.concatenate([SHARD_OF_PLACES, SHARD_OF_PLACES + 100], axis=2) if nested else SHARD_OF_PLACES
        with zarr_python.patch(strict=True) if patched else nullcontext():
            z[...] = values
        stored.append(store._store_dict["c/0/0/0"].to_bytes())
    assert stored[0] == stored[1]


def test_a_shard_has_the_order_that_a_codec_of_zarr_python_names() -> None:
    """zarr-python 3.4 writes inner chunks in the order that its codec names."""
    by_column = SHARD_OF_PLACES.transpose().tobytes()
    for order, expected in [("lexicographic", SHARD_OF_PLACES.tobytes()), ("colexicographic", by_column)]:
        store = zarr.storage.MemoryStore()
        z = zarr.create_array(store, shape=(3, 2, 5), chunks=(1, 1, 1), shards=(3, 2, 5), dtype="u1", compressors=None)
        object.__setattr__(z.metadata.codecs[0], "subchunk_write_order", order)  # type: ignore[union-attr]
        with zarr_python.patch(strict=True):
            z[...] = SHARD_OF_PLACES
        assert store._store_dict["c/0/0/0"].to_bytes()[:30] == expected


@pytest.mark.filterwarnings(
    "ignore:The 'generic' unit:DeprecationWarning"
)  # zarr-python uses it, and newer NumPy warns
@pytest.mark.parametrize("dtype", ["M8", ">m8"])
def test_times_without_a_unit_are_left_to_zarr_python(dtype: str) -> None:
    z = zarr.create_array({}, shape=(4,), dtype=dtype, zarr_format=3)
    assert zarr_python.explain(z) == "zarr-python: its elements are times without a unit"
    with zarr_python.patch(force=True):
        z[:] = np.arange(4).astype("i8").view("M8" if "M" in dtype else "m8")
        assert np.asarray(z[:]).view(f"{np.asarray(z[:]).dtype.byteorder}i8").tolist() == [0, 1, 2, 3]
