"""The enumerations of codec options in `zarr.codecs` and its modules: using their members warns."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import tessarr.codecs as ours
from tessarr.common.warn import warn_as_zarr_python
from tessarr.errors import ZarrDeprecationWarning


class _Deprecated(type):
    """The class of a class that stands for an enumeration of tessarr."""

    _enumeration: type[StrEnum]

    def __getattr__(cls, name: str) -> StrEnum:
        members = type.__getattribute__(cls, "_enumeration").__members__
        if name not in members:
            raise AttributeError(name)
        message = f"{cls.__name__}.{name} is deprecated; pass the string {str(members[name])!r} instead."
        warn_as_zarr_python(message, ZarrDeprecationWarning)
        member: StrEnum = members[name]
        return member

    def __getitem__(cls, name: str) -> StrEnum:
        return cls._enumeration[name]

    def __call__(cls, value: str) -> StrEnum:
        return cls._enumeration(value)

    def __iter__(cls) -> Iterator[StrEnum]:
        return iter(cls._enumeration)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._enumeration)


class Endian(metaclass=_Deprecated):
    """Values of ``endian`` of `BytesCodec`."""

    _enumeration = ours.Endian


class BloscShuffle(metaclass=_Deprecated):
    """Values of ``shuffle`` of `BloscCodec`."""

    _enumeration = ours.BloscShuffle


class BloscCname(metaclass=_Deprecated):
    """Values of ``cname`` of `BloscCodec`."""

    _enumeration = ours.BloscCname


class ShardingCodecIndexLocation(metaclass=_Deprecated):
    """Values of ``index_location`` of `ShardingCodec`."""

    _enumeration = ours.ShardingCodecIndexLocation
