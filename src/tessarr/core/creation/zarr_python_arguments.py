"""Judge the arguments of `create` and `create_array` as zarr-python does.

tessarr understands more spellings than zarr-python. Where programs rely on zarr-python's refusals and warnings, the setting
``zarr_python.arguments`` enables them; `tessarr.as_zarr` sets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tessarr.codecs.base import BytesToBytes
from tessarr.common.warn import warn
from tessarr.dtypes.base import DataType, Scalar
from tessarr.errors import (
    BaseZarrError,
    DataTypeValidationError,
    ZarrDeprecationWarning,
    ZarrRuntimeWarning,
    ZarrUserWarning,
)
from tessarr.settings import config as settings

_NOT_IMPLEMENTED = (
    "synchronizer",
    "chunk_store",
    "cache_metadata",
    "cache_attrs",
    "object_codec",
    "read_only",
    "meta_array",
)
_V3_ONLY = {
    "codecs": "codecs cannot be used for arrays with zarr_format 2. Use filters and compressor instead.",
    "chunk_key_encoding": (
        "chunk_key_encoding cannot be used for arrays with zarr_format 2. Use dimension_separator instead."
    ),
    "dimension_names": "dimension_names cannot be used for arrays with zarr_format 2.",
}
_V2_ONLY = {
    "dimension_separator": (
        "dimension_separator cannot be used for arrays with zarr_format 3. Use chunk_key_encoding instead."
    ),
    "filters": "filters cannot be used for arrays with zarr_format 3. Use array-to-array codecs instead.",
    "compressor": "compressor cannot be used for arrays with zarr_format 3. Use bytes-to-bytes codecs instead.",
}
_EXTENDED = frozenset(("compressors", "serializer", "shards"))
"""Keywords of `create` that zarr-python's lacks: who gives one does not rely on zarr-python's refusals."""


def are_judged() -> bool:
    """Return whether arguments are judged as zarr-python does."""
    return bool(settings.get("zarr_python.arguments"))


def check_without_effect(given: Mapping[str, object]) -> None:
    """Warn of each keyword that zarr-python accepts and ignores."""
    if are_judged():
        for name in _NOT_IMPLEMENTED:
            if given.get(name) is not None:
                warn(f"{name} is not yet implemented", ZarrRuntimeWarning)


def format_given(zarr_format: int | None, zarr_version: int | None) -> int | None:
    """Return the format that `zarr_format`, or its former name `zarr_version`, asks for; warn of the latter.

    Raises `ValueError` where both are given and differ.
    """
    if zarr_version is None:
        return zarr_format
    if zarr_format not in (None, zarr_version):
        raise ValueError(f"zarr_format {zarr_format} does not match zarr_version {zarr_version}, please only set one")
    if are_judged():
        warn("zarr_version is deprecated, use zarr_format", ZarrDeprecationWarning)
    return zarr_version


def check_compressor(zarr_format: int) -> None:
    """Warn of the argument `compressor` where an array may have several."""
    if zarr_format == 3 and are_judged():
        warn("The `compressor` argument is deprecated. Use `compressors` instead.", ZarrUserWarning)


def check_write_empty_chunks(given: Mapping[str, object]) -> None:
    """Warn of the keyword `write_empty_chunks`, which zarr-python deprecates."""
    if given.get("write_empty_chunks") is not None and are_judged():
        message = "The `write_empty_chunks` keyword argument is deprecated and will be removed; give it in `config`"
        warn(message, ZarrRuntimeWarning)


def check_create(zarr_format: int, given: Mapping[str, object], config: object) -> None:
    """Warn of keywords of `create` without effect; raise `BaseZarrError` for those of the other format."""
    if not are_judged():
        return
    check_without_effect(given)
    check_write_empty_chunks(given)
    if given.get("write_empty_chunks") is not None and config is not None:
        message = "write_empty_chunks is given both by itself and in config; the former is used"
        warn(message, ZarrUserWarning)
    if given.get("chunk_shape") is not None and given.get("chunks") is not None:
        raise BaseZarrError("Only one of chunk_shape or chunks can be provided.")
    if not _EXTENDED.isdisjoint(given):
        return
    for name, message in (_V3_ONLY if zarr_format < 3 else _V2_ONLY).items():
        value = given.get(name)
        if value is not None and not (isinstance(value, str) and value == "auto"):
            raise BaseZarrError(message)


def check_create_array(zarr_format: int, serializer: object, dimension_names: object) -> None:
    """Raise `BaseZarrError` for arguments of `create_array` that v2 lacks."""
    if zarr_format < 3 and are_judged():
        if not (isinstance(serializer, str) and serializer == "auto"):
            raise BaseZarrError("Zarr format 2 arrays do not support `serializer`.")
        if dimension_names is not None:
            raise BaseZarrError("Zarr format 2 arrays do not support dimension names.")


def check_v2_compressor(given: Sequence[object]) -> None:
    """Raise `BaseZarrError` for a codec of v3, which tessarr translates and zarr-python does not."""
    if are_judged() and any(isinstance(codec, BytesToBytes) for codec in given):
        raise BaseZarrError(
            "Cannot use a BytesBytesCodec as a compressor for zarr v2 arrays. Use a numcodecs codec directly instead."
        )


def check_v2_unit(data_type: DataType) -> None:
    """Raise `DataTypeValidationError` for times without a unit, which v2 requires and zarr-python does not."""
    if data_type.lacks_unit and not are_judged():
        raise DataTypeValidationError(
            f"v2 cannot express {data_type.name} without a unit", hint="Give a unit, such as 'ns'"
        )


def default_fill(data_type: DataType) -> Scalar:
    """Return the default fill value: of records zeros, as with zarr-python, where tessarr's times are NaT."""
    return data_type.cast_given_fill(0) if _is_judged_record(data_type) else data_type.default_fill()


def _is_judged_record(data_type: DataType) -> bool:
    return bool(data_type.dtype.names) and not data_type.may_be_missing and are_judged()


def order_of(zarr_format: int, order: str | None, configured: str) -> tuple[str | None, str]:
    """Return the order to store, and the memory layout of results, for `order` and the layout in the array's config.

    With zarr-python `order` has no effect in v3, and in v2 the config stands for a missing `order`.
    """
    if not are_judged():
        if order not in (None, "C", "F"):
            raise ValueError(f"order must be 'C' or 'F', got {order!r}")
        return order, order or configured
    if zarr_format == 3:
        if order is not None:
            warn(
                "The `order` keyword argument has no effect for Zarr format 3 arrays. "
                "Give the memory layout of results in `config`, as in config={'order': 'F'}",
                ZarrRuntimeWarning,
            )
        return None, configured
    return order or configured, order or configured
