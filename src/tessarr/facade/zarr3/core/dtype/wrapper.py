"""zarr-python's ``zarr.core.dtype.wrapper``."""

from typing import Any, TypeVar

from tessarr.facade.zarr3.dtype import DataType as ZDType

TBaseDType = Any
TBaseScalar = Any
TScalar_co = TypeVar("TScalar_co", covariant=True)
TDType_co = TypeVar("TDType_co", covariant=True)

__all__ = ["TBaseDType", "TBaseScalar", "TDType_co", "TScalar_co", "ZDType"]
