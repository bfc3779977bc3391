"""The surface of zarr-python under ``import tessarr as zarr``: every name, with its keywords and defaults.

The tables are written from zarr-python's documentation (3.4 and 2.18). The parity test compares with the zarr-python that
is installed, so that what the tables forgot is seen too.
"""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tessarr as zarr
from tessarr import errors
from tessarr.storage import MemoryStore

_LEGACY = "cache_attrs synchronizer chunk_store meta_array zarr_version"
_CREATE = (
    "chunks dtype compressor fill_value order store synchronizer overwrite path chunk_store filters cache_metadata "
    "cache_attrs read_only object_codec dimension_separator write_empty_chunks zarr_format meta_array attributes "
    "chunk_shape chunk_key_encoding codecs dimension_names storage_options config mode data zarr_version"
)
_CREATE_ARRAY = (
    "shape dtype data chunks=auto shards=None filters=auto compressors=auto serializer=auto fill_value order=None "
    "attributes=None chunk_key_encoding=None dimension_names=None storage_options=None overwrite=False config=None "
    "write_data=True"
)
_SELECT = "out=None fields=None prototype=None"

FUNCTIONS = {
    "create_array": f"store name=None zarr_format {_CREATE_ARRAY}",
    "from_array": "store data write_data=True name=None chunks=keep shards=keep filters=keep compressors=keep "
    "serializer=keep fill_value order=None zarr_format=None attributes=None chunk_key_encoding=None "
    "dimension_names=None storage_options=None overwrite=False config=None",
    "create": f"shape {_CREATE}",
    "open": "store=None mode=None zarr_format=None path=None storage_options=None config=None zarr_version",
    "open_array": "store=None zarr_format=None path storage_options=None config=None mode=None zarr_version",
    "open_group": f"store=None mode path=None storage_options=None zarr_format=None attributes=None "
    f"use_consolidated=None {_LEGACY}",
    "open_consolidated": "use_consolidated=True",
    "create_group": "store path=None zarr_format=None overwrite=False attributes=None storage_options=None",
    "group": f"store=None overwrite=False path=None zarr_format=None attributes=None storage_options=None {_LEGACY}",
    "create_hierarchy": "store nodes overwrite=False",
    "save": "store zarr_format=None path=None",
    "save_array": "store arr zarr_format=None path=None storage_options",
    "save_group": "store zarr_format=None path=None storage_options",
    "load": "store path=None zarr_format=None",
    "array": "data",
    "empty": "shape",
    "zeros": "shape",
    "ones": "shape",
    "full": "shape fill_value",
    "empty_like": "a zarr_format",
    "zeros_like": "a zarr_format",
    "ones_like": "a zarr_format",
    "full_like": "a zarr_format fill_value",
    "open_like": "a path zarr_format",
    "consolidate_metadata": "store path=None zarr_format=None",
    "tree": "grp expand=None level=None",
    "copy": "source dest name=None shallow=False without_attrs=False log=None if_exists=raise dry_run=False",
    "copy_all": "source dest shallow=False without_attrs=False log=None if_exists=raise dry_run=False",
    "copy_store": "source dest source_path= dest_path= excludes=None includes=None flags=0 if_exists=raise "
    "dry_run=False log=None",
    "print_debug_info": "",
    "set_format": "log_format",
}
ARRAY_PROPERTIES = (
    "async_array config store store_path path name basename metadata ndim shape size nbytes dtype order read_only "
    "fill_value attrs filters serializer compressors chunks shards read_chunk_sizes write_chunk_sizes cdata_shape "
    "nchunks nchunks_initialized info oindex vindex blocks _async_array "
    # absent in zarr-python 3, there in 2 or asked for
    "synchronizer chunk_store meta_array is_view initialized write_empty_chunks nshards dimension_names"
)
ARRAY_METHODS = {
    "get_basic_selection": f"selection {_SELECT}",
    "get_orthogonal_selection": f"selection {_SELECT}",
    "get_coordinate_selection": f"selection {_SELECT}",
    "get_block_selection": f"selection {_SELECT}",
    "get_mask_selection": f"mask {_SELECT}",
    "set_basic_selection": "selection value fields=None prototype=None",
    "set_orthogonal_selection": "selection value fields=None prototype=None",
    "set_coordinate_selection": "selection value fields=None prototype=None",
    "set_block_selection": "selection value fields=None prototype=None",
    "set_mask_selection": "mask value fields=None prototype=None",
    "resize": "new_shape delete_outside_chunks=True",
    "append": "data axis=0",
    "update_attributes": "new_attributes",
    "nbytes_stored": "",
    "info_complete": "",
    "with_config": "config",
    "open": "store config=None",
    "from_dict": "store_path data",
    "__array__": "dtype=None copy=None",
    "__getitem__": "selection",
    "__setitem__": "selection value",
    "__len__": "",
    "__iter__": "",
    "__enter__": "",
    "islice": "start=None end",
    "astype": "dtype",
    "view": "shape=None chunks=None dtype=None fill_value=None read_only=None",
    "digest": "hashname=sha1",
    "hexdigest": "hashname=sha1",
    "info_items": "",
}
GROUP_PROPERTIES = "store store_path path name basename metadata attrs read_only info synchronizer _async_group"
GROUP_METHODS = {
    "__getitem__": "path",
    "__setitem__": "name value",
    "__delitem__": "path",
    "__contains__": "path",
    "__iter__": "",
    "__len__": "",
    "__enter__": "",
    "keys": "",
    "values": "",
    "items": "",
    "get": "path default=None",
    "get_array": "path",
    "get_group": "path",
    "info_complete": "",
    "create_group": "name overwrite=False attributes=None",
    "require_group": "name overwrite=False",
    "require_groups": "",
    "create_groups": "",
    "create_array": f"name {_CREATE_ARRAY} compressor",
    "create": f"name {_CREATE_ARRAY} compressor",
    "require_array": "name shape dtype=None exact=False",
    "create_hierarchy": "nodes overwrite=False",
    "members": "max_depth=0 use_consolidated_for_children=True",
    "nmembers": "max_depth=0",
    "groups": "",
    "group_keys": "",
    "group_values": "",
    "arrays": "recurse=False",
    "array_keys": "recurse=False",
    "array_values": "",
    "tree": "expand=None level=None max_nodes=500 plain=False",
    "move": "source dest",
    "update_attributes": "new_attributes",
    "update_attributes_async": "new_attributes",
    "empty": "name shape",
    "zeros": "name shape",
    "ones": "name shape",
    "full": "name shape fill_value",
    "empty_like": "name data",
    "zeros_like": "name data",
    "ones_like": "name data",
    "full_like": "name data fill_value",
    "from_store": "store attributes=None zarr_format=3 overwrite=False",
    "open": "store zarr_format",
    "array": "name data",
    "create_dataset": "name shape dtype data",
    "require_dataset": "name shape dtype=None exact=False",
    "visit": "func",
    "visitkeys": "func",
    "visitvalues": "func",
    "visititems": "func",
    "_ipython_key_completions_": "",
    "info_items": "",
}
MODULES = {
    "api.asynchronous": " ".join(name for name in FUNCTIONS if name not in ("print_debug_info", "set_format")),
    "api.synchronous": " ".join(name for name in FUNCTIONS if name not in ("print_debug_info", "set_format")),
    "storage": "LocalStore MemoryStore ManagedMemoryStore GpuMemoryStore ZipStore FsspecStore ObjectStore LoggingStore "
    "WrapperStore StorePath StoreLike DirectoryStore NestedDirectoryStore TempStore FSStore ABSStore DBMStore LMDBStore "
    "SQLiteStore MongoDBStore RedisStore N5Store N5FSStore LRUStoreCache ConsolidatedMetadataStore KVStore DictStore "
    "init_array init_group contains_array contains_group rmdir rename listdir getsize migrate_1to2 atexit_rmtree",
    "abc.store": "Store ByteRequest RangeByteRequest OffsetByteRequest SuffixByteRequest SupportsGetSync SupportsSetSync "
    "SupportsDeleteSync SupportsSyncStore ByteGetter ByteSetter SyncByteGetter SyncByteSetter set_or_delete",
    "abc.codec": "ArrayArrayCodec ArrayBytesCodec BytesBytesCodec BaseCodec ArrayBytesCodecPartialDecodeMixin "
    "ArrayBytesCodecPartialEncodeMixin CodecPipeline SupportsSyncCodec",
    "abc.metadata": "Metadata",
    "abc.numcodec": "Numcodec",
    "abc.buffer": "Buffer NDBuffer BufferPrototype ArrayLike NDArrayLike",
    "buffer": "cpu default_buffer_prototype",
    "buffer.cpu": "Buffer NDBuffer buffer_prototype numpy_buffer_prototype as_numpy_array_wrapper",
    "codecs": "BloscCodec BytesCodec Crc32cCodec GzipCodec ShardingCodec TransposeCodec VLenUTF8Codec VLenBytesCodec "
    "ZstdCodec CastValue ScaleOffset BloscShuffle BloscCname Endian ShardingCodecIndexLocation numcodecs",
    "codecs.numcodecs": "Blosc LZ4 Zstd Zlib GZip BZ2 LZMA Shuffle Delta BitRound FixedScaleOffset Quantize PackBits "
    "AsType CRC32 CRC32C Adler32 Fletcher32 JenkinsLookup3 PCodec ZFPY",
    "dtype": "Bool Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float16 Float32 Float64 Complex64 Complex128 "
    "DateTime64 TimeDelta64 FixedLengthUTF32 VariableLengthUTF8 NullTerminatedBytes RawBytes VariableLengthBytes "
    "Structured Struct ZDType data_type_registry parse_dtype",
    "registry": "register_codec register_pipeline register_buffer register_ndbuffer register_chunk_key_encoding "
    "get_codec_class get_pipeline_class get_buffer_class get_ndbuffer_class get_chunk_key_encoding_class get_numcodec",
    "experimental.cache_store": "CacheStore",
    "core.sync": "sync",
    "core.dtype": "VariableLengthUTF8 parse_dtype",
    "core.buffer": "default_buffer_prototype Buffer NDBuffer BufferPrototype",
    "core.array_spec": "ArraySpec ArrayConfig",
    "core.common": "AccessModeLiteral ZarrFormat JSON",
    "core": "Array",
    "hierarchy": "Group group open_group",
    "creation": "array create empty zeros ones full empty_like zeros_like ones_like full_like open_array open_like",
    "convenience": "open save load save_array save_group copy copy_all copy_store tree consolidate_metadata "
    "open_consolidated",
    "attrs": "Attributes",
    "sync": "ThreadSynchronizer ProcessSynchronizer",
}
TOP = (
    "Array AsyncArray Group AsyncGroup config __version__ errors storage codecs dtype registry abc api buffer "
    "ThreadSynchronizer ProcessSynchronizer DirectoryStore NestedDirectoryStore TempStore ZipStore MemoryStore DictStore "
    "KVStore LRUStoreCache SQLiteStore DBMStore LMDBStore RedisStore MongoDBStore FSStore ABSStore "
    "Blosc Zlib BZ2 LZMA LZ4 Zstd GZip Delta FixedScaleOffset Quantize PackBits Categorize AsType"
)
STORE = (
    "with_read_only is_empty clear read_only get get_partial_values exists set set_if_not_exists delete delete_dir list "
    "list_prefix list_dir close getsize getsize_prefix get_ranges supports_writes supports_deletes supports_listing "
    "supports_partial_writes supports_consolidated_metadata"
)
ERRORS = {
    "BaseZarrError": (ValueError,),
    "NodeNotFoundError": (errors.BaseZarrError, FileNotFoundError),
    "ArrayNotFoundError": (errors.NodeNotFoundError,),
    "GroupNotFoundError": (errors.NodeNotFoundError,),
    "ContainsArrayError": (errors.BaseZarrError,),
    "ContainsGroupError": (errors.BaseZarrError,),
    "ContainsArrayAndGroupError": (errors.BaseZarrError,),
    "MetadataValidationError": (errors.BaseZarrError,),
    "NodeTypeValidationError": (errors.MetadataValidationError,),
    "UnknownCodecError": (errors.BaseZarrError,),
    "PickleCodecDisabledError": (errors.BaseZarrError,),
    "ChunkNotFoundError": (errors.BaseZarrError,),
    "DataTypeValidationError": (ValueError,),
    "BoundsCheckError": (IndexError,),
    "NegativeStepError": (IndexError,),
    "VindexInvalidSelectionError": (IndexError,),
    "ArrayIndexError": (IndexError,),
    "ZarrUserWarning": (UserWarning,),
    "ZarrDeprecationWarning": (DeprecationWarning,),
    "ZarrFutureWarning": (FutureWarning,),
    "ZarrRuntimeWarning": (RuntimeWarning,),
    "UnstableSpecificationWarning": (FutureWarning,),
}
SETTINGS = {
    "default_zarr_format": 3,
    "array.order": "C",
    "array.write_empty_chunks": False,
    "array.read_missing_chunks": True,
    "array.target_shard_size_bytes": None,
    "array.sharding_coalesce_max_gap_bytes": 512 << 10,  # 1 MiB there: docs/settings.md has the reason
    "array.sharding_coalesce_max_bytes": 16 << 20,
    "array.allow_unsafe_pickle_decode": False,
    "async.concurrency": 256,  # 10 there, and not adaptive
    "async.timeout": None,
    "threading.max_workers": None,
    "json_indent": 2,
}
ACCEPTED_SETTINGS = (
    "array.rectilinear_chunks codec_pipeline.path codec_pipeline.batch_size codec_pipeline.max_workers codecs buffer "
    "ndbuffer"
)


def lacking(function: Callable[..., Any], wanted: str) -> list[str]:
    """What `function` does not take, or takes with another default. ``name=default`` as in its documentation."""
    parameters = inspect.signature(function).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    wrong = []
    for item in wanted.split():
        name, has_default, default = item.partition("=")
        parameter = parameters.get(name)
        if parameter is None:
            if not takes_any:
                wrong.append(name)
        elif has_default and str(parameter.default) != default:
            wrong.append(f"{item}, here {parameter.default!r}")
    return wrong


def missing(place: Any, names: str) -> list[str]:
    return [name for name in names.split() if not hasattr(place, name)]


def test_the_top_level_has_every_name() -> None:
    assert not missing(zarr, TOP)
    assert not missing(zarr, " ".join(FUNCTIONS))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_the_keywords_of_zarr_python(name: str) -> None:
    assert not lacking(getattr(zarr, name), FUNCTIONS[name])


@pytest.fixture(scope="module")
def array() -> zarr.Array:
    return zarr.create_array({}, shape=(4,), dtype="i4")


@pytest.fixture(scope="module")
def group() -> zarr.Group:
    return zarr.group()


def test_an_array_has_every_property(array: zarr.Array) -> None:
    assert not missing(array, ARRAY_PROPERTIES)


@pytest.mark.parametrize("name", ARRAY_METHODS)
def test_a_method_of_array_takes_the_keywords_of_zarr_python(array: zarr.Array, name: str) -> None:
    if name == "resize":  # takes the shape in one argument or in several, as zarr-python 2 does
        assert not lacking(array.resize, "delete_outside_chunks=True")
    else:
        assert not lacking(getattr(array, name), ARRAY_METHODS[name])


def test_a_group_has_every_property(group: zarr.Group) -> None:
    assert not missing(group, GROUP_PROPERTIES)


@pytest.mark.parametrize("name", GROUP_METHODS)
def test_a_method_of_group_takes_the_keywords_of_zarr_python(group: zarr.Group, name: str) -> None:
    assert name in dir(type(group))
    assert not lacking(getattr(group, name), GROUP_METHODS[name])


def test_the_asynchronous_forms_have_what_the_others_have(array: zarr.Array, group: zarr.Group) -> None:
    aio = (
        "getitem setitem get_orthogonal_selection get_mask_selection get_coordinate_selection oindex vindex resize append "
        "update_attributes nchunks_initialized nbytes_stored info_complete shape dtype chunks attrs metadata store_path"
    )
    assert not missing(array.async_array, aio)
    assert not missing(array.async_array.oindex, "getitem")
    assert not missing(array.async_array.vindex, "getitem")
    own = "getitem setitem delitem contains get members nmembers keys groups arrays create_group require_group create_array"
    assert not missing(group._async_group, f"{own} require_array update_attributes attrs metadata store_path")


@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_every_name(name: str) -> None:
    module = importlib.import_module(f"tessarr.{name}")
    assert not missing(module, MODULES[name])


def test_the_old_modules_are_reached_by_attribute_and_shadow_nothing() -> None:
    for name in ("hierarchy", "creation", "convenience", "attrs", "sync", "core"):
        assert getattr(zarr, name) is importlib.import_module(f"tessarr.{name}")
    assert callable(zarr.open)
    assert callable(zarr.group)


def test_a_store_has_every_method() -> None:
    assert not missing(MemoryStore(), STORE)


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_what_callers_catch(name: str) -> None:
    assert issubclass(getattr(errors, name), ERRORS[name])
    assert getattr(zarr.errors, name) is getattr(errors, name)


def test_the_settings_have_the_names_and_defaults_of_zarr_python() -> None:
    assert {name: zarr.config.get(name) for name in SETTINGS} == SETTINGS
    for name in ACCEPTED_SETTINGS.split():
        zarr.config.get(name)
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        assert zarr.create_array({}, data=[1, 2])[...].tolist() == [1, 2]
    for name in ("set", "get", "reset", "enable_gpu"):
        assert callable(getattr(zarr.config, name))


def test_the_version_is_one_that_callers_switch_on() -> None:
    major, minor, *_ = zarr.__version__.split(".")
    assert int(major) == 3
    assert int(minor) >= 2


# -- against the zarr-python that is installed ---------------------------------------------------------------------------

DIFFERENT = {
    # Removed by zarr-python 3.2; deprecated before.
    ("Array", "create"),
    ("AsyncArray", "create"),
    ("AsyncArray", "codec_pipeline"),
    ("AsyncGroup", "from_dict"),
}
"""What zarr-python 3.1 has and tessarr has not."""


def reference() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("zarr")


def refused(ours: Any, theirs: Any) -> list[str]:
    """Keywords that `theirs` takes and `ours` does not."""
    skipped = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    names = [p.name for p in inspect.signature(theirs).parameters.values() if p.kind not in skipped]
    return lacking(ours, " ".join(name for name in names if name not in ("self", "cls")))


def test_every_public_function_of_the_installed_zarr_python_is_here() -> None:
    other = reference()
    for name in other.__all__:
        assert hasattr(zarr, name), name
        if inspect.isfunction(getattr(other, name)):
            assert not refused(getattr(zarr, name), getattr(other, name)), name


@pytest.mark.parametrize("kind", ["Array", "Group", "AsyncArray", "AsyncGroup"])
def test_every_public_method_of_the_installed_zarr_python_is_here(
    kind: str, array: zarr.Array, group: zarr.Group
) -> None:
    node: Any = {"Array": array, "Group": group, "AsyncArray": array.async_array, "AsyncGroup": group._async_group}[
        kind
    ]
    theirs = getattr(reference(), kind)
    names = [name for name in dir(theirs) if not name.startswith("_") and (kind, name) not in DIFFERENT]
    # v3 arrays have several compressors and raise, as zarr-python's do.
    absent = [name for name in names if name not in dir(node) and name != "compressor" and not hasattr(node, name)]
    assert not absent
    for name in names:
        function = inspect.getattr_static(theirs, name)
        function = getattr(function, "__func__", function)
        if inspect.isfunction(function) and (kind, name) != ("Array", "resize"):
            assert not refused(getattr(node, name), function), name


@pytest.mark.parametrize("module", ["storage", "codecs", "errors", "registry", "dtype", "abc.codec", "abc.store"])
def test_every_public_name_of_a_module_of_the_installed_zarr_python_is_here(module: str) -> None:
    reference()
    theirs = importlib.import_module(f"zarr.{module}")
    names = getattr(theirs, "__all__", None) or [
        name for name, value in vars(theirs).items() if getattr(value, "__module__", "").startswith(f"zarr.{module}")
    ]
    ours = importlib.import_module(f"tessarr.{module}")
    public = " ".join(name for name in names if not re.search(r"JSON_V[23]$", name))  # shapes of documents, for types
    assert not sorted(set(missing(ours, public)) - NOT_OURS.get(module, set()))


NOT_OURS = {"registry": {"Registry"}}
"""Per module, names that mean nothing here."""
