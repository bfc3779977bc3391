"""Zarr v3: extension points, must_understand, names, and extensions of third parties."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr import registry
from tessarr.codecs.base import BytesToBytes
from tessarr.errors import BaseZarrError, MetadataValidationError, ReadOnlyError
from tests.conformance.documents import (
    BIG,
    CRC,
    GROUP,
    GZIP,
    LITTLE,
    array_document,
    opened,
    regular,
    sharding,
    store_of,
    stored_json,
    transpose,
)  # fmt: skip
from tests.narrow import array_of

POINTS = ("data_type", "chunk_grid", "chunk_key_encoding", "codec", "storage_transformer")
UNKNOWN = {"name": "example.unknown"}
IGNORABLE = {**UNKNOWN, "must_understand": False}
VALUES = b"\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0"


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The registry's tables, put back as they were at the end."""
    for point in POINTS:
        monkeypatch.setitem(registry._TABLE, point, dict(registry._TABLE[point]))
    monkeypatch.setattr(registry, "_entry_points_read", set(registry._entry_points_read))
    return registry._TABLE


def document_with(member: str, value: Any) -> dict[str, Any]:
    """An array document whose extension point `member` holds `value` (in a list where it is one)."""
    lists = {"codecs": [LITTLE, value], "storage_transformers": [value]}
    return array_document(**{member: lists.get(member, value)})


MEMBERS = ("data_type", "chunk_grid", "chunk_key_encoding", "codecs", "storage_transformers")


@pytest.mark.spec("V3-EXT-01", "V3-EXT-06", "V3-EXT-08")
@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("written", ["example.unknown", UNKNOWN, {**UNKNOWN, "must_understand": True}], ids=repr)
def test_an_unknown_extension_is_refused_at_open_at_each_of_the_five_points(member: str, written: Any) -> None:
    store = store_of({"": document_with(member, written)}, {"c/0": VALUES})
    before = dict(store)
    for mode in ("r", "r+", "a"):
        with pytest.raises(MetadataValidationError, match=r"example\.unknown") as raised:
            tessarr.open_array(store, mode=mode, shape=4, dtype="i4")
        assert [problem.loc[0] for problem in raised.value.problems] == [member]
    assert store == before


@pytest.mark.spec("V3-EXT-01")
def test_groups_and_the_fill_value_are_no_extension_points() -> None:
    for member in MEMBERS:
        with pytest.raises(MetadataValidationError, match=member):
            opened({**GROUP, member: [UNKNOWN]})
    with pytest.raises(MetadataValidationError, match="fill_value"):
        opened(array_document(fill_value={"name": "example.fill"}))


@pytest.mark.spec("V3-EXT-02", "V3-EXT-03")
@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize(
    "written",
    [
        {"configuration": {}}, {"name": 5}, {"name": None}, {"name": ["gzip"]}, {}, 5, None, [], True,
        {"name": "bytes", "configuration": None}, {"name": "bytes", "configuration": []},
        {"name": "bytes", "configuration": "x"}, {"name": "bytes", "must_understand": "false"},
    ],
    ids=repr,
)  # fmt: skip
def test_a_malformed_extension_is_refused(member: str, written: Any) -> None:
    with pytest.raises(MetadataValidationError, match=member):
        opened(document_with(member, written))


@pytest.mark.spec("V3-EXT-04")
def test_a_string_is_short_for_an_object_with_that_name() -> None:
    short = opened(array_document((4,), codecs=[LITTLE, "crc32c"], chunk_key_encoding="default"))
    long = opened(array_document((4,), codecs=[LITTLE, CRC], chunk_key_encoding={"name": "default"}))
    assert short.metadata == long.metadata
    assert short.metadata.chunk_key_encoding.separator == "/"
    assert opened(array_document(chunk_key_encoding="v2")).metadata.chunk_key_encoding.separator == "."
    again = opened(short.metadata.to_dict())
    assert again.metadata == short.metadata


@pytest.mark.spec("V3-EXT-05", "V3-EXT-17")
def test_the_writer_uses_the_object_form_and_no_must_understand() -> None:
    store: dict[str, bytes] = {}
    root = tessarr.group(store)
    root.create_array("a", shape=(4, 4), dtype="f4", compressors=["crc32c"])
    root.create_array("b", shape=(4, 4), dtype="f4", chunks=(2, 2), shards=(4, 4), filters=[transpose(1, 0)])
    root.create_array("c", shape=4, dtype=str, chunk_key_encoding="v2")
    for name in "abc":
        document = stored_json(store, name)
        assert "must_understand" not in str(document)
        assert all(isinstance(codec, dict) for codec in document["codecs"])
        assert set(document) <= {
            "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value",
            "codecs", "attributes", "dimension_names", "storage_transformers",
        }  # fmt: skip
    inner = stored_json(store, "b")["codecs"][0]["configuration"]
    assert all(isinstance(codec, dict) for codec in [*inner["codecs"], *inner["index_codecs"]])


REFUSED = [
    1, "x", None, [], {}, True, {"must_understand": True}, {"must_understand": "false"}, {"must_understand": 0},
    {"must_understand": None}, [{"must_understand": False}], False, {"name": "n"},
]  # fmt: skip


@pytest.mark.spec("V3-EXT-07", "V3-EXT-08", "V3-EXT-16")
@pytest.mark.parametrize("value", REFUSED, ids=repr)
@pytest.mark.parametrize("base", [GROUP, array_document()], ids=["group", "array"])
def test_an_unknown_member_is_refused(base: dict[str, Any], value: Any) -> None:
    store = store_of({"": {**base, "new_member": value}})
    before = dict(store)
    for mode in ("r", "r+", "a"):
        with pytest.raises(MetadataValidationError, match="new_member"):
            tessarr.open(store, mode=mode)
    assert store == before


@pytest.mark.spec("V3-EXT-07", "V3-EXT-16")
@pytest.mark.parametrize("value", [{"must_understand": False}, {"must_understand": False, "name": "n"}], ids=repr)
@pytest.mark.parametrize("base", [GROUP, array_document()], ids=["group", "array"])
def test_an_unknown_member_that_may_be_ignored_is_ignored_and_kept(base: dict[str, Any], value: Any) -> None:
    store = store_of({"": {**base, "new_member": value}})
    node = tessarr.open(store, mode="r+")
    node.attrs["a"] = 1
    assert stored_json(store)["new_member"] == value


@pytest.mark.spec("V3-EXT-09")
@pytest.mark.parametrize("member", MEMBERS[:3])
def test_data_type_grid_and_key_encoding_must_always_be_understood(member: str) -> None:
    with pytest.raises(MetadataValidationError, match=r"example\.unknown"):
        opened(document_with(member, IGNORABLE))


@pytest.mark.spec("V3-EXT-09", "V3-EXT-11")
@pytest.mark.parametrize("flag", [True, False])
def test_the_flag_says_nothing_of_a_known_extension(flag: bool) -> None:
    told = {"must_understand": flag}
    z = opened(
        array_document(
            data_type={"name": "int32", **told},
            chunk_grid={**regular([4]), **told},
            chunk_key_encoding={"name": "default", **told},
            codecs=[{**LITTLE, **told}, {**GZIP, **told}],
        )
    )
    z[...] = [1, 2, 3, 4]
    assert z[...].tolist() == [1, 2, 3, 4]


@pytest.mark.spec("V3-EXT-10")
def test_an_unknown_storage_transformer_that_may_be_ignored_is_skipped() -> None:
    z = opened(array_document(storage_transformers=[IGNORABLE]), {"c/0": VALUES})
    assert z[...].tolist() == [1, 2, 3, 4]
    z[0] = 9
    assert z[...].tolist() == [9, 2, 3, 4]
    assert stored_json(z.store._map)["storage_transformers"] == [IGNORABLE]


@pytest.mark.spec("V3-EXT-10")
@pytest.mark.parametrize("sharded", [False, True])
def test_an_unknown_codec_that_may_be_ignored_leaves_an_array_to_read(sharded: bool) -> None:
    index = b"\0" * 8 + b"\x10" + b"\0" * 7
    codecs = [sharding([4], [LITTLE, IGNORABLE], [LITTLE])] if sharded else [LITTLE, IGNORABLE]
    store = store_of({"": array_document(codecs=codecs)}, {"c/0": VALUES + index if sharded else VALUES})
    before = dict(store)
    z = array_of(tessarr.open(store, mode="r+"))
    assert z[...].tolist() == [1, 2, 3, 4]
    assert z.read_only
    for write in (lambda: z.__setitem__(0, 1), lambda: z.append([1]), lambda: z.resize(8), lambda: z.attrs.put({})):
        with pytest.raises(ReadOnlyError, match=r"example\.unknown"):
            write()
    assert store == before


@pytest.mark.spec("V3-EXT-10")
def test_skipping_a_codec_must_leave_a_whole_chain() -> None:
    with pytest.raises(MetadataValidationError, match="array_to_bytes"):
        opened(array_document(codecs=[IGNORABLE]))


@pytest.mark.spec("V3-EXT-11")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("codecs", {**GZIP, "foo": 1}),
        ("data_type", {"name": "int32", "foo": 1}),
        ("chunk_grid", {**regular([4]), "foo": 1}),
        ("chunk_key_encoding", {"name": "default", "foo": {"must_understand": False}}),
        ("storage_transformers", {**IGNORABLE, "foo": 1}),
    ],
)
def test_unknown_members_of_an_extension_are_refused(member: str, value: Any) -> None:
    with pytest.raises(MetadataValidationError, match="foo"):
        opened(document_with(member, value))


@pytest.mark.spec("V3-EXT-12")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("codecs", {"name": "gzip", "configuration": {"level": 1, "turbo": True}}),
        ("codecs", {"name": "crc32c", "configuration": {"turbo": True}}),
        ("data_type", {"name": "int32", "configuration": {"turbo": True}}),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [4], "turbo": True}}),
        ("chunk_key_encoding", {"name": "default", "configuration": {"separator": "/", "turbo": True}}),
        ("chunk_key_encoding", {"name": "v2", "configuration": {"turbo": True}}),
    ],
)
def test_unknown_configuration_of_a_known_extension_is_refused(member: str, value: Any) -> None:
    with pytest.raises(MetadataValidationError, match="turbo"):
        opened(document_with(member, value))


@pytest.mark.spec("V3-EXT-13")
def test_names_to_register_follow_the_syntax(tables: Any) -> None:
    for name in ("zstd", "numcodecs.adler32", "my_codec-2"):
        registry.register("codec", name, Shift)
    for name in ("foo/bar", "foo:bar", "Zstd", "1a", "a", "", "_a", "a b", "ä-codec"):
        with pytest.raises(BaseZarrError, match="cannot name"):
            registry.register("codec", name, Shift)
        assert name not in registry._TABLE["codec"]


URI = "https://codec.zarrs.dev/bytes_to_bytes/shift"


@pytest.mark.spec("V3-EXT-14")
def test_a_uri_reaches_the_registry_and_may_be_registered(tables: Any) -> None:
    document = array_document(codecs=[LITTLE, {"name": URI, "configuration": {"by": 3}}])
    with pytest.raises(MetadataValidationError, match=r"unknown codec .https://codec\.zarrs\.dev"):
        opened(document)
    registry.register("codec", URI, Shift)
    z = opened(document, {"c/0": bytes((byte + 3) % 256 for byte in VALUES)})
    assert z[...].tolist() == [1, 2, 3, 4]


class Shift(BytesToBytes):
    """Adds ``by`` to every byte."""

    name = URI

    def __init__(self, by: int) -> None:
        self.by = by

    @classmethod
    def from_json(cls, configuration: Any) -> Any:
        return cls(configuration["by"])

    def to_json(self) -> Any:
        return {"name": URI, "configuration": {"by": self.by}}

    def encoded_size(self, nbytes: int) -> int:
        return nbytes

    def encode(self, data: Any) -> bytes:
        return bytes((byte + self.by) % 256 for byte in memoryview(data).cast("B"))

    def decode(self, data: Any, nbytes: int | None) -> bytes:
        return bytes((byte - self.by) % 256 for byte in memoryview(data).cast("B"))


PLUGIN = '''
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.dtypes.numeric import Int32
from tessarr.grids.regular import RegularGrid
from tessarr.keys.default import DefaultKeyEncoding
from tessarr.storage import PrefixStore, WrapperStore


class Counts(Int32):
    """A data type."""

    name = "plugin.counts"

    @classmethod
    def from_json(cls, name, configuration):
        return cls()

    def to_json(self):
        return "plugin.counts"


class Grid(RegularGrid):
    """A chunk grid."""

    name = "plugin.grid"

    @classmethod
    def from_json(cls, configuration, shape):
        return cls([configuration["edge"]] * len(shape))


class Keys(DefaultKeyEncoding):
    """A chunk key encoding."""

    name = "plugin.keys"

    @classmethod
    def from_json(cls, configuration):
        return cls()

    def encode(self, coords):
        return "k" + "-".join(map(str, coords))


class Serializer(BytesCodec):
    """A codec: big-endian bytes."""

    name = "plugin.big"

    @classmethod
    def from_json(cls, configuration):
        return cls("big")


class Elsewhere:
    """A storage transformer: chunks stand below another prefix."""

    @classmethod
    def from_json(cls, configuration):
        self = cls()
        self.prefix = configuration["prefix"]
        return self

    def wrap(self, store):
        return PrefixStore(store, self.prefix)
'''

ENTRY_POINTS = """
    [tessarr.data_type]
    plugin.counts = tessarr_plugin:Counts
    [tessarr.chunk_grid]
    plugin.grid = tessarr_plugin:Grid
    [tessarr.chunk_key_encoding]
    plugin.keys = tessarr_plugin:Keys
    [tessarr.codec]
    plugin.big = tessarr_plugin:Serializer
    [tessarr.storage_transformer]
    plugin.elsewhere = tessarr_plugin:Elsewhere
"""

PLUGIN_DOCUMENT = array_document(
    data_type="plugin.counts",
    chunk_grid={"name": "plugin.grid", "configuration": {"edge": 2}},
    chunk_key_encoding="plugin.keys",
    codecs=["plugin.big"],
    storage_transformers=[{"name": "plugin.elsewhere", "configuration": {"prefix": "moved"}}],
)


def install(folder: Path) -> None:
    """A distribution with the plugin, as an installer would leave it in `folder`."""
    (folder / "tessarr_plugin.py").write_text(PLUGIN, encoding="utf-8")
    info = folder / "tessarr_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tessarr-plugin\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(textwrap.dedent(ENTRY_POINTS), encoding="utf-8")


def check_plugin() -> None:
    """All five extensions work together."""
    store = store_of({"": PLUGIN_DOCUMENT})
    z = array_of(tessarr.open(store, mode="r+"))
    z[...] = [1, 2, 3, 4]
    assert {key: bytes(value) for key, value in store.items() if key != "zarr.json"} == {
        "moved/k0": b"\0\0\0\1\0\0\0\2", "moved/k1": b"\0\0\0\3\0\0\0\4",
    }  # fmt: skip
    assert array_of(tessarr.open(store, mode="r"))[...].tolist() == [1, 2, 3, 4]


@pytest.mark.spec("V3-EXT-15", "V3-ST-01")
def test_an_installed_package_extends_all_five_points(
    tmp_path: Path, tables: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MetadataValidationError, match=r"plugin\."):
        opened(PLUGIN_DOCUMENT)
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    registry._entry_points_read.clear()  # as in a new process
    check_plugin()
    sys.modules.pop("tessarr_plugin", None)


@pytest.mark.spec("V3-EXT-15")
def test_a_new_process_finds_the_installed_package(tmp_path: Path) -> None:
    install(tmp_path)
    code = f"""
import sys
sys.path[:0] = {[str(tmp_path), *sys.path]!r}
import tests.conformance.test_v3_extensions as tests
tests.check_plugin()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.spec("V3-EXT-15")
def test_registered_classes_extend_all_five_points(tables: Any) -> None:
    module: dict[str, Any] = {}
    exec(PLUGIN, module)
    registry.register("data_type", "plugin.counts", module["Counts"])
    registry.register("chunk_grid", "plugin.grid", module["Grid"])
    registry.register("chunk_key_encoding", "plugin.keys", module["Keys"])
    registry.register("codec", "plugin.big", module["Serializer"])
    registry.register("storage_transformer", "plugin.elsewhere", module["Elsewhere"])
    check_plugin()


CORE = {
    "codec": "blosc bytes crc32c gzip sharding_indexed transpose",
    "chunk_grid": "regular",
    "chunk_key_encoding": "default v2",
    "data_type": "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128",
}


@pytest.mark.spec("V3-EXT-18")
def test_the_core_extensions_are_there(tmp_path: Path) -> None:
    for point, names in CORE.items():
        for name in names.split():
            assert registry.get(point, name).name == name  # type: ignore[union-attr, arg-type]
    for data_type in [*CORE["data_type"].split(), "r8", "r24"]:
        fill = (
            [0] * (int(data_type[1:]) // 8) if data_type[0] == "r" else {"b": False, "c": [0, 0]}.get(data_type[0], 0)
        )
        assert opened(array_document(data_type=data_type, fill_value=fill, codecs=[BIG])).shape == (4,)
    z = tessarr.create_array(str(tmp_path), shape=4, dtype="i4")
    assert tessarr.open(z.store.url, mode="r").shape == (4,)
