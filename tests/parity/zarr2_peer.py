"""Run by zarr-python 2.18 in a process of its own: ``read DIR OUT`` or ``write DIR``; of N5 ``read_n5``, ``write_n5``.

``read`` stores, for every array below DIR, its values in the pickle file OUT: name → (dtype text, shape, list of values).
``write`` makes arrays below DIR, and their values in ``DIR/expected.pickle``. ``read_n5`` and ``write_n5`` do so for the
datasets in the group ``g`` of the N5 container ``DIR/c.n5``.
"""

import os
import pickle
import sys
from typing import Any

import numcodecs
import numpy as np
import zarr


def plain(values: Any) -> tuple[Any, ...]:
    values = np.asarray(values)
    if values.dtype.kind == "O":
        return ("O", values.shape, values.ravel().tolist())
    return (np.lib.format.dtype_to_descr(values.dtype), values.shape, np.ascontiguousarray(values).tobytes())


def read(place: str, out: str) -> None:
    found: dict[str, Any] = {}
    for name in sorted(os.listdir(place)):
        try:
            found[name] = plain(zarr.open_array(os.path.join(place, name), mode="r")[...])
        except Exception as error:
            found[name] = repr(error)
    with open(out, "wb") as file:
        pickle.dump(found, file)


def write(place: str) -> None:
    expected: dict[str, Any] = {}

    def make(name: str, values: Any, **keywords: Any) -> None:
        array = zarr.open_array(os.path.join(place, name), mode="w", shape=values.shape, **keywords)
        array[...] = values
        expected[name] = plain(values)

    for dtype in ("|b1", ">i2", "<i4", "<u8", "<f2", ">f4", "<f8", "<c16", "<M8[s]", "|S7", "<U5"):
        for order in "CF":
            values = np.arange(70).reshape(7, 10).astype("i8").astype(dtype)
            make(f"{dtype[1:3]}{order}", values, dtype=dtype, chunks=(3, 4), order=order)
    compressors = (None, numcodecs.Zlib(), numcodecs.LZMA(), numcodecs.BZ2(), numcodecs.LZ4(), numcodecs.Zstd())
    values = np.arange(70, dtype="i4").reshape(7, 10)
    for n, compressor in enumerate(compressors):
        make(f"compressor{n}", values, dtype="i4", chunks=(3, 4), compressor=compressor, dimension_separator="/")
    make("filters", values, dtype="i4", chunks=(3, 4), filters=[numcodecs.Delta("i4"), numcodecs.Shuffle(4)])
    for n, fill in enumerate((np.nan, -np.inf, 0.1)):
        holes = np.full((7, 10), fill)
        holes[0, 0] = 1
        make(f"fill{n}", holes, dtype="f8", chunks=(3, 4), fill_value=fill, write_empty_chunks=False)
    words = np.array([f"wört {n}" for n in range(70)], object).reshape(7, 10)
    make("words", words, dtype=object, object_codec=numcodecs.VLenUTF8(), chunks=(3, 4))
    make("json", words, dtype=object, object_codec=numcodecs.JSON(), chunks=(3, 4))
    make("msgpack", words, dtype=object, object_codec=numcodecs.MsgPack(), chunks=(3, 4))
    make(
        "categorize", words, dtype=object, object_codec=numcodecs.Categorize(list(words.ravel()), object), chunks=(3, 4)
    )
    records = np.zeros((7, 10), [("a", "<i4"), ("b", ">f8"), ("c", [("d", "|S3")])])
    records["a"] = values
    make("records", records, dtype=records.dtype, chunks=(3, 4))
    make("scalar", np.array(2.5), dtype="f8")
    with open(os.path.join(place, "expected.pickle"), "wb") as file:
        pickle.dump(expected, file)


def n5_store(place: str) -> Any:
    stores: Any = zarr  # whose types here are those of zarr 3
    return stores.N5Store(os.path.join(place, "c.n5"))


def read_n5(place: str, out: str) -> None:
    group: Any = zarr.open_group(n5_store(place), mode="r")["g"]
    found = {name: (plain(array[...]), array.attrs["title"]) for name, array in group.arrays()}
    with open(out, "wb") as file:
        pickle.dump(found, file)


def write_n5(place: str) -> None:
    expected: dict[str, Any] = {}
    group: Any = zarr.open_group(n5_store(place), mode="w").create_group("g")
    compressors = (None, numcodecs.GZip(), numcodecs.Zlib(), numcodecs.BZ2(), numcodecs.LZMA(), numcodecs.Blosc())
    for dtype in ("|u1", "<i2", ">u4", "<i8", "<f4", ">f8"):
        for n, compressor in enumerate(compressors):
            values = (np.arange(70) % 61).reshape(7, 10).astype(dtype)
            name = f"{dtype[1:]}-{n}"
            array = group.create_dataset(name, shape=(7, 10), dtype=dtype, chunks=(3, 4), compressor=compressor)
            array[...] = values
            array.attrs["title"] = name
            expected[name] = plain(values)
    with open(os.path.join(place, "expected.pickle"), "wb") as file:
        pickle.dump(expected, file)


if __name__ == "__main__":
    assert zarr.__version__.startswith("2.18."), zarr.__version__
    verbs: dict[str, Any] = {"read": read, "write": write, "read_n5": read_n5, "write_n5": write_n5}
    verbs[sys.argv[1]](*sys.argv[2:])
