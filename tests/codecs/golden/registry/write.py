"""Writes the files of this folder with other implementations. tessarr is not imported.

Needs zfpy (the zfp library in C), imagecodecs, tensorstore, numcodecs, zarr (for scale_offset 3.2 or newer); and, for lz4-java,
a JDK and the path of its jar in LZ4_JAVA_JAR (Debian: liblz4-java); for blocks of N5 by Java's classes the jars of
commons-compress, its dependencies, xz and lz4-java in N5_JAVA_CLASSPATH (lib/*). Without jars these files stay as they are.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import imagecodecs.numcodecs
import numpy as np
import tensorstore
import zarr
import zfpy

HERE = Path(__file__).parent
INDEX = HERE / "index.json"
OLD = {entry["file"]: entry for entry in json.loads(INDEX.read_text())} if INDEX.exists() else {}
ENTRIES: list[dict[str, object]] = []
JAVA = """
import java.io.*;
import net.jpountz.lz4.*;
public class Write {
    public static void main(String[] a) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        LZ4BlockOutputStream stream = new LZ4BlockOutputStream(out, Integer.parseInt(a[0]));
        stream.write(System.in.readAllBytes());
        stream.close();
        System.out.write(out.toByteArray());
        System.out.flush();
    }
}
"""


N5_JAVA = """
import java.io.*;
import java.util.zip.*;
import net.jpountz.lz4.*;
import org.apache.commons.compress.compressors.bzip2.*;
import org.apache.commons.compress.compressors.gzip.*;
import org.apache.commons.compress.compressors.xz.*;
public class Block {
    public static void main(String[] a) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        DataOutputStream header = new DataOutputStream(out);
        header.writeShort(0);
        header.writeShort(a.length - 1);
        for (int i = 1; i < a.length; i++) header.writeInt(Integer.parseInt(a[i]));
        header.flush();
        OutputStream stream = out;
        if (a[0].equals("gzip")) stream = new GzipCompressorOutputStream(out);
        if (a[0].equals("zlib")) stream = new DeflaterOutputStream(out);
        if (a[0].equals("bzip2")) stream = new BZip2CompressorOutputStream(out, 9);
        if (a[0].equals("xz")) stream = new XZCompressorOutputStream(out, 6);
        if (a[0].equals("lz4")) stream = new LZ4BlockOutputStream(out, 65536);
        stream.write(System.in.readAllBytes());
        stream.close();
        System.out.write(out.toByteArray());
        System.out.flush();
    }
}
"""
"""Blocks by the classes of Java that N5's compressions are made of."""


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    whole = np.arange(count) * 7 % 101
    return (np.sin(whole / 9) * 50 if dtype[0] == "f" else whole).astype(dtype).reshape(shape)


def add(
    name: str,
    writer: str,
    codecs: Sequence[object],
    data_type: object,
    encoded: bytes,
    decoded: np.ndarray,
    given: np.ndarray | None = None,
    **more: object,
) -> None:
    """`given` is what was encoded, where decoding does not give it back or encoding must give the same bytes."""
    (HERE / f"{name}.bin").write_bytes(encoded)
    little = decoded.astype(decoded.dtype.newbyteorder("<"))
    entry = {
        "file": f"{name}.bin", "writer": writer, "codecs": codecs, "data_type": data_type,
        "shape": list(decoded.shape), "decoded": little.tobytes().hex(), **more,
    }  # fmt: skip
    if given is not None:
        entry["given"] = given.astype(given.dtype.newbyteorder("<")).tobytes().hex()
    ENTRIES.append(entry)


def promoted(array: np.ndarray) -> np.ndarray:
    """What zfp is given of small integers, by the formulas of zarr-extensions' "zfp"."""
    if array.dtype.kind == "f" or array.dtype.itemsize >= 4:
        return array.astype(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array
    bits = 8 * array.dtype.itemsize
    return (array.astype("i4") - ((1 << (bits - 1)) if array.dtype.kind == "u" else 0)) << (31 - bits)


def demoted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f" or dtype.itemsize >= 4:
        return array.clip(0).astype(dtype) if dtype.kind == "u" else array
    bits = 8 * dtype.itemsize
    info = np.iinfo(dtype)
    middle = (1 << (bits - 1)) if dtype.kind == "u" else 0
    return ((array >> (31 - bits)) + middle).clip(info.min, info.max).astype(dtype)


def from_zfpy() -> None:
    writer = f"zfp 1.0 (C), through zfpy {version('zfpy')}"
    kinds = {
        "int32": zfpy.type_int32,
        "int64": zfpy.type_int64,
        "float32": zfpy.type_float,
        "float64": zfpy.type_double,
    }
    modes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"mode": "reversible"}, {}),
        ({"mode": "fixed_precision", "precision": 19}, {"precision": 19}),
        ({"mode": "fixed_rate", "rate": 10.5}, {"rate": 10.5}),
        ({"mode": "fixed_accuracy", "tolerance": 0.05}, {"tolerance": 0.05}),
        # What fixed precision sets, in the words of expert mode.
        ({"mode": "expert", "minbits": 1, "maxbits": 16658, "maxprec": 12, "minexp": -1074}, {"precision": 12}),
    ]
    shapes = [(33,), (5, 7), (3, 4, 5), (2, 3, 4, 5)]
    types = ["float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
    number = 0
    for at, name in enumerate(types):
        for configuration, options in modes:
            if name[0] != "f" and configuration["mode"] == "fixed_accuracy":
                continue
            array = values({"f": "f", "i": "i", "u": "u"}[name[0]] + str(np.dtype(name).itemsize), shapes[number % 4])
            given = np.ascontiguousarray(promoted(array))
            encoded = zfpy.compress_numpy(given, write_header=False, **options)
            back = zfpy._decompress(encoded, kinds[given.dtype.name], given.shape, **options)
            decoded = demoted(np.asarray(back), array.dtype)
            codec = {"name": "zfp", "configuration": configuration}
            add(f"zfp-{number:02}-{name}-{configuration['mode']}", writer, [codec], name, encoded, decoded, array)
            number += 1
        assert at < len(types)


def from_imagecodecs() -> None:
    writer = f"imagecodecs {version('imagecodecs')}"
    module: Any = imagecodecs.numcodecs
    array = values("i4", (500,))
    made = [
        module.Zlib(level=6), module.Deflate(level=6), module.Zstd(level=5), module.Bz2(level=9), module.Lzma(level=6),
        module.Lz4(level=1), module.Lz4(header=True), module.Blosc(level=5, compressor="zstd", shuffle="shuffle", typesize=4),
        module.Lzw(),
    ]  # fmt: skip
    for number, codec in enumerate(made):
        configuration = codec.get_config()
        name = configuration.pop("id")
        chain = [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": name, "configuration": configuration},
        ]
        add(f"imagecodecs-{number}-{name}", writer, chain, "int32", bytes(codec.encode(array)), array)
    lzw = module.Lzw()
    for size in (1, 300, 20000):
        plain = (np.arange(size) * 37 % 251 % 17).astype("u1")
        add(f"lzw-{size}", writer, ["bytes", "lzw"], "uint8", bytes(lzw.encode(plain)), plain)


def n5_block(dtype: str, shape: tuple[int, ...], compression: dict[str, object]) -> tuple[bytes, np.ndarray]:
    """The one block of a dataset that TensorStore writes, axes in the order of N5."""
    array = values(dtype, shape)
    metadata = {
        "dimensions": list(shape),
        "blockSize": list(shape),
        "dataType": array.dtype.name,
        "compression": compression,
    }
    with tempfile.TemporaryDirectory() as place:
        spec = {"driver": "n5", "kvstore": {"driver": "file", "path": place}, "metadata": metadata}
        node = tensorstore.open(spec, create=True).result()
        node.write(array).result()
        return Path(place, *["0"] * len(shape)).read_bytes(), array


def from_tensorstore_n5() -> None:
    writer = f"tensorstore {version('tensorstore')}, driver n5"
    blosc = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}
    cases: list[tuple[dict[str, object], list[object]]] = [
        ({"type": "raw"}, []),
        ({"type": "gzip", "level": 5}, [{"name": "gzip", "configuration": {"level": 5}}]),
        ({"type": "gzip", "level": 5, "useZlib": True}, [{"name": "numcodecs.zlib", "configuration": {"level": 5}}]),
        ({"type": "zstd", "level": 3}, [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}]),
        ({"type": "bzip2", "blockSize": 9}, [{"name": "numcodecs.bz2", "configuration": {"level": 9}}]),
        ({"type": "xz", "preset": 6}, [{"name": "numcodecs.lzma", "configuration": {"preset": 6}}]),
        ({"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}, [{"name": "blosc", "configuration": blosc}]),
    ]
    for number, (compression, inner) in enumerate(cases):
        for dtype, shape in (("u2", (5, 7, 3)), ("f8", (6, 4))):
            encoded, array = n5_block(dtype, shape, compression)
            order = list(reversed(range(len(shape))))
            chain = [
                {"name": "transpose", "configuration": {"order": order}},
                {"name": "bytes", "configuration": {"endian": "big"}},
            ]
            codec = {"name": "n5_default", "configuration": {"codecs": [*chain, *inner]}}
            name = f"n5-{number}-{compression['type']}-{len(shape)}d"
            given = array if compression["type"] == "raw" else None
            add(name, writer, [codec], array.dtype.name, encoded, array, given)
            if number in (0, 1):  # the block of another shape, in a chunk that is larger here and smaller there
                chunk = tuple(n + 2 if axis % 2 == 0 else n - 1 for axis, n in enumerate(shape))
                wider = np.zeros(chunk, array.dtype)
                common = tuple(slice(min(n, m)) for n, m in zip(chunk, shape))
                wider[common] = array[common]
                add(f"{name}-other-shape", writer, [codec], array.dtype.name, encoded, wider)


def from_tensorstore_jpeg() -> None:
    writer = f"tensorstore {version('tensorstore')}, driver neuroglancer_precomputed"
    for channels in (1, 3):
        x, y, z, c = np.ogrid[:16, :12, :4, :channels]
        array = ((x * 9 + y * 5 + z * 3 + c * 40) % 256).astype("u1")
        scale = {
            "size": [16, 12, 4], "encoding": "jpeg", "jpeg_quality": 90, "chunk_size": [16, 12, 4],
            "resolution": [1, 1, 1], "key": "s",
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as place:
            spec = {
                "driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": place},
                "multiscale_metadata": {"data_type": "uint8", "num_channels": channels, "type": "image"},
                "scale_metadata": scale,
            }  # fmt: skip
            node = tensorstore.open(spec, create=True).result()
            node.write(array).result()
            encoded = Path(place, "s", "0-16_0-12_0-4").read_bytes()
            decoded = np.asarray(node.read().result()).transpose(2, 1, 0, 3)
        decoded = decoded if channels == 3 else decoded[..., 0]
        add(f"jpeg-{channels}", writer, ["jpeg"], "uint8", encoded, np.ascontiguousarray(decoded))


FIELDS = [("x", "float32"), ("n", "uint8"), ("d", "int64")]
RECORDS = np.array([(1.5, 7, -9), (2.0, 0, 1 << 40), (3.0, 255, 5)], [(name, kind) for name, kind in FIELDS])


def from_tensorstore_struct() -> None:
    data_type = {
        "name": "struct",
        "configuration": {"fields": [{"name": name, "data_type": kind} for name, kind in FIELDS]},
    }
    codec = {"name": "bytes", "configuration": {"endian": "big"}}
    metadata = {
        "shape": [3], "data_type": data_type, "fill_value": {"x": 0.0, "n": 0, "d": 0}, "codecs": [codec],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        for number, (name, _) in enumerate(FIELDS):
            spec = {
                "driver": "zarr3",
                "kvstore": {"driver": "file", "path": place},
                "metadata": metadata,
                "field": name,
            }
            node = tensorstore.open(spec, create=number == 0).result()
            node.write(RECORDS[name]).result()
        encoded = Path(place, "c", "0").read_bytes()
    writer = f"tensorstore {version('tensorstore')}, driver zarr3"
    add("struct", writer, [codec], data_type, encoded, RECORDS, RECORDS)


def from_zarr_python() -> None:
    writer = f"zarr {version('zarr')}"
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        node = zarr.create_array(place, shape=(3,), chunks=(3,), dtype=RECORDS.dtype, compressors=None)
        node[...] = RECORDS
        document = json.loads(Path(place, "zarr.json").read_text())
        codec = {"name": "bytes", "configuration": {"endian": "little"}}
        add("structured", writer, [codec], document["data_type"], Path(place, "c", "0").read_bytes(), RECORDS, RECORDS)
    words = np.array([b"", b"a", b"\0\xff", b"x" * 300], object)
    with tempfile.TemporaryDirectory() as place:
        node = zarr.create_array(place, shape=(4,), chunks=(4,), dtype="variable_length_bytes", compressors=None)
        node[...] = words
        (HERE / "vlen-bytes.bin").write_bytes(Path(place, "c", "0").read_bytes())
    ENTRIES.append(
        {
            "file": "vlen-bytes.bin", "writer": writer, "codecs": ["vlen-bytes"], "data_type": "bytes", "shape": [4],
            "elements": [word.hex() for word in words],
        }
    )  # fmt: skip


def from_scale_offset() -> None:
    """The codec of zarr-python 3.2 and newer; with an older one its files stay as they are."""
    newest: Any = zarr
    given: list[tuple[str, dict[str, Any]]] = [
        ("int16", {"offset": 7, "scale": 3}),
        ("uint8", {"scale": 2}),
        ("float32", {"offset": -1.5, "scale": 0.1}),
        ("float64", {"offset": 0.3, "scale": -7.0}),
        ("int64", {"scale": -2}),
    ]
    for number, (dtype, configuration) in enumerate(given):
        name = f"scale_offset-{number}-{dtype}"
        if not hasattr(newest.codecs, "ScaleOffset"):
            ENTRIES.append(OLD[f"{name}.bin"])
            continue
        array = values(dtype, (5, 25))
        with tempfile.TemporaryDirectory() as place:
            filters = [newest.codecs.ScaleOffset(**configuration)]
            how = {"shape": (5, 25), "chunks": (5, 25), "filters": filters, "compressors": None}
            node = newest.create_array(place, dtype=dtype, **how)
            node[...] = array
            encoded = Path(place, "c", "0", "0").read_bytes()
            decoded = np.asarray(node[...])
        endian = {} if array.itemsize == 1 else {"configuration": {"endian": "little"}}
        codecs = [{"name": "scale_offset", "configuration": configuration}, {"name": "bytes", **endian}]
        add(name, f"zarr {version('zarr')}", codecs, dtype, encoded, decoded, array)


def from_java() -> None:
    jar = os.environ.get("LZ4_JAVA_JAR")
    array = values("i4", (1250,))
    for size in (64, 65536):
        name = f"lz4java-{size}"
        codec = {"name": "tessarr.lz4java", "configuration": {"block_size": size}}
        if jar is None:
            ENTRIES.append(OLD[f"{name}.bin"])
            continue
        with tempfile.TemporaryDirectory() as place:
            source = Path(place, "Write.java")
            source.write_text(JAVA)
            command = ["java", "-cp", jar, str(source), str(size)]
            encoded = subprocess.run(
                command, input=array.astype("<i4").tobytes(), capture_output=True, check=True
            ).stdout
        chain = [{"name": "bytes", "configuration": {"endian": "little"}}, codec]
        add(name, "lz4-java 1.8.0, LZ4BlockOutputStream", chain, "int32", encoded, array, array)


def from_java_n5() -> None:
    jars = os.environ.get("N5_JAVA_CLASSPATH")
    cases: list[tuple[str, str, list[object]]] = [
        ("raw", "Java 17, DataOutputStream", []),
        ("gzip", "commons-compress 1.26.1", [{"name": "gzip", "configuration": {"level": 6}}]),
        ("zlib", "Java 17, DeflaterOutputStream", [{"name": "numcodecs.zlib", "configuration": {"level": 6}}]),
        ("bzip2", "commons-compress 1.26.1", [{"name": "numcodecs.bz2", "configuration": {"level": 9}}]),
        ("xz", "xz-java 1.9", [{"name": "numcodecs.lzma", "configuration": {"preset": 6}}]),
        ("lz4", "lz4-java 1.8.0", [{"name": "tessarr.lz4java", "configuration": {"block_size": 65536}}]),
    ]
    array = values("i2", (6, 5, 4))
    chain = [
        {"name": "transpose", "configuration": {"order": [2, 1, 0]}},
        {"name": "bytes", "configuration": {"endian": "big"}},
    ]
    for kind, writer, inner in cases:
        for end in (6, 4):  # whole, and cut where the array ends
            name = f"n5-java-{kind}-{end}"
            if jars is None:
                ENTRIES.append(OLD[f"{name}.bin"])
                continue
            block = array[:end]
            with tempfile.TemporaryDirectory() as place:
                source = Path(place, "Block.java")
                source.write_text(N5_JAVA)
                command = ["java", "-cp", jars, str(source), kind, *map(str, block.shape)]
                body = block.astype(">i2").tobytes(order="F")
                encoded = subprocess.run(command, input=body, capture_output=True, check=True).stdout
            filled = np.zeros_like(array)
            filled[:end] = block
            codec = {"name": "n5_default", "configuration": {"codecs": [*chain, *inner]}}
            add(name, writer, [codec], "int16", encoded, filled, array if kind == "raw" and end == 6 else None)


if __name__ == "__main__":
    from_zfpy()
    from_imagecodecs()
    from_tensorstore_n5()
    from_tensorstore_jpeg()
    from_tensorstore_struct()
    from_zarr_python()
    from_scale_offset()
    from_java()
    from_java_n5()
    INDEX.write_text(json.dumps(ENTRIES, indent=1) + "\n", encoding="utf-8")
    print(len(ENTRIES), "entries")
