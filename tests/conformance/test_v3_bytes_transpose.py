"""Zarr v3: the codecs bytes and transpose, in stored bytes written and read by hand."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.codecs import BytesCodec
from tessarr.errors import BaseZarrError, CodecError, MetadataValidationError, ZarrRuntimeWarning
from tests.conformance.documents import (
    BIG,
    CRC,
    LITTLE,
    Place,
    array_document,
    opened,
    sharding,
    store_of,
    stored_json,
    transpose,
)  # fmt: skip
from tests.narrow import array_of

PLAIN = {"name": "bytes"}
STRUCT = {
    "name": "struct",
    "configuration": {"fields": [{"name": "a", "data_type": "uint16"}, {"name": "b", "data_type": "uint8"}]},
}


def stored(place: Place, document: dict[str, Any], values: Any) -> bytes:
    """The bytes of the one chunk after `values` are written."""
    place.open(document)[...] = values
    keys = place.keys()
    assert len(keys) == 1
    data = place.get(keys[0])
    assert data is not None
    return data


@pytest.mark.spec("V3-BYTES-01")
@pytest.mark.filterwarnings("ignore:codecs has a codec called endian")
def test_the_legacy_name_endian_is_read_and_never_written(place: Place) -> None:
    legacy = {"name": "endian", "configuration": {"endian": "big"}}
    z = place.open(array_document((2,), codecs=[legacy]), {"c/0": b"\0\0\1\2\0\0\0\1"})
    assert z[...].tolist() == [258, 1]
    assert z.metadata.to_dict()["codecs"] == [BIG]
    store: dict[str, bytes] = {}
    tessarr.create(shape=2, dtype="i4", codecs=[legacy], store=store)
    assert stored_json(store)["codecs"] == [BIG]


@pytest.mark.spec("V3-BYTES-02")
@pytest.mark.parametrize("data_type", ["int16", "int32", "uint64", "float16", "float64", "complex64"])
def test_the_byte_order_of_wider_elements_is_required(data_type: str) -> None:
    fill = [0, 0] if data_type == "complex64" else 0
    for codecs in ([PLAIN], ["bytes"], [sharding([2], [PLAIN])]):
        with pytest.raises(MetadataValidationError, match="byte order"):
            opened(array_document((4,), data_type=data_type, fill_value=fill, codecs=codecs))


@pytest.mark.spec("V3-BYTES-02")
@pytest.mark.parametrize("without", [PLAIN, {"name": "bytes", "configuration": {"endian": None}}, "bytes"])
def test_the_byte_order_of_the_index_of_a_shard_is_required(without: Any) -> None:
    codec = sharding([2], [LITTLE], [without, CRC])
    with pytest.raises(MetadataValidationError, match="byte order of uint64"):
        opened(array_document((4,), codecs=[codec]))


@pytest.mark.spec("V3-BYTES-02")
@pytest.mark.parametrize("dtype", ["int32", "complex128", [("a", "u2"), ("b", "u1")]])
def test_no_array_without_byte_order_is_made(dtype: Any) -> None:
    chains: list[list[Any]] = [[BytesCodec(None)], [sharding([2], [PLAIN])], [sharding([2], [LITTLE], [PLAIN, CRC])]]
    for codecs in chains:
        store: dict[str, bytes] = {}
        with pytest.raises(CodecError, match="byte order"):
            tessarr.create(shape=4, dtype=dtype, codecs=codecs, store=store)
        assert not store


@pytest.mark.spec("V3-BYTES-02")
@pytest.mark.parametrize("spelling", ["bytes", PLAIN, {"name": "bytes", "configuration": {}}, BytesCodec()])
def test_a_program_may_leave_the_byte_order_out_where_it_makes_an_array(spelling: Any) -> None:
    """As in zarr-python, the codec has a default, which the document states."""
    for arguments in ({"serializer": spelling}, {"serializer": spelling, "shards": 4, "chunks": 2}):
        store: dict[str, bytes] = {}
        tessarr.create_array(store, shape=4, dtype="int32", compressors=None, **arguments)[...] = range(4)
        assert '"endian": "little"' in store["zarr.json"].decode()
        assert array_of(tessarr.open(store, mode="r"))[...].tolist() == [0, 1, 2, 3]


@pytest.mark.spec("V3-BYTES-02")
def test_text_without_byte_order_is_little_with_a_warning_and_refused_when_strict(place: Place) -> None:
    text = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 4}}
    for codec in (PLAIN, "bytes"):
        document = array_document((2,), data_type=text, fill_value="", codecs=[codec])
        with pytest.warns(ZarrRuntimeWarning, match="byte order"):
            z = place.open(document, {"c/0": "ab".encode("utf-32-le")})
        assert z[...].tolist() == ["a", "b"]
        with tessarr.config.set({"strict": True}), pytest.raises(MetadataValidationError, match="byte order"):
            tessarr.open(place.store, mode="r")


@pytest.mark.spec("V3-BYTES-02")
@pytest.mark.parametrize("endian", ["native", "<", "Little", 1, True, ["little"]])
def test_the_byte_order_is_little_or_big(endian: Any) -> None:
    with pytest.raises(MetadataValidationError, match="endian"):
        opened(array_document(codecs=[{"name": "bytes", "configuration": {"endian": endian}}]))


@pytest.mark.spec("V3-BYTES-02")
def test_a_structure_without_byte_order_is_little_with_a_warning_and_refused_when_strict(place: Place) -> None:
    document = array_document((2,), data_type=STRUCT, fill_value={"a": 0, "b": 0}, codecs=[PLAIN])
    with pytest.warns(ZarrRuntimeWarning, match="little-endian"):
        z = place.open(document, {"c/0": b"\2\1\3\5\0\7"})
    assert z[...].tolist() == [(258, 3), (5, 7)]
    with tessarr.config.set({"strict": True}), pytest.raises(MetadataValidationError, match="byte order"):
        tessarr.open(place.store, mode="r")


@pytest.mark.spec("V3-BYTES-03")
@pytest.mark.parametrize("data_type", ["uint8", "int8", "bool"])
def test_single_bytes_have_no_byte_order(place: Place, data_type: str) -> None:
    fill = data_type != "bool" and 9
    written = [
        stored(place, array_document((3,), data_type=data_type, fill_value=fill, codecs=[codec]), [0, 1, 1])
        for codec in (PLAIN, LITTLE, BIG)
    ]
    assert written == [b"\0\1\1"] * 3


@pytest.mark.spec("V3-BYTES-04")
@pytest.mark.parametrize(
    ("data_type", "codec", "value", "expected"),
    [
        ("int32", BIG, 258, "00000102"), ("int32", LITTLE, 258, "02010000"),
        ("complex64", LITTLE, 1 + 2j, "0000803f00000040"), ("complex64", BIG, 1 + 2j, "3f80000040000000"),
        ("complex128", BIG, 1 + 2j, "3ff00000000000004000000000000000"),
        ("float16", BIG, 1, "3c00"), ("float64", LITTLE, -2, "00000000000000c0"), ("uint16", BIG, 1, "0001"),
        ("int64", BIG, -2, "fffffffffffffffe"),
    ],
)  # fmt: skip
def test_the_examples_of_byte_orders(place: Place, data_type: str, codec: Any, value: Any, expected: str) -> None:
    fill = [0, 0] if data_type.startswith("c") else 0
    document = array_document((1,), data_type=data_type, fill_value=fill, codecs=[codec])
    assert stored(place, document, value).hex() == expected
    assert place.open(document, {"c/0": bytes.fromhex(expected)})[0] == value


@pytest.mark.spec("V3-BYTES-05")
def test_a_bool_is_a_byte_and_any_but_zero_is_true_unless_strict(place: Place) -> None:
    document = array_document((4,), data_type="bool", fill_value=False, codecs=[PLAIN])
    assert stored(place, document, [True, False, False, True]) == b"\1\0\0\1"
    z = place.open(document, {"c/0": b"\0\1\2\xff"})
    assert z[...].tolist() == [False, True, True, True]
    assert z[...].view("u1").tolist() == [0, 1, 1, 1]
    assert z[2:3].view("u1").tolist() == [1]
    with tessarr.config.set({"strict": True}):
        strict = array_of(tessarr.open(place.store, mode="r"))
        with pytest.raises(CodecError, match="bool"):
            strict[...]


@pytest.mark.spec("V3-BYTES-06")
def test_elements_are_in_c_order(place: Place) -> None:
    document = array_document((2, 3), data_type="uint8", fill_value=9, codecs=[PLAIN])
    for values in (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))):
        assert stored(place, document, values) == bytes(range(6))


@pytest.mark.spec("V3-BYTES-07", "V3-DTYPE-02")
@pytest.mark.parametrize("codec", [PLAIN, LITTLE, BIG], ids=json.dumps)
def test_raw_bytes_are_stored_as_they_are(place: Place, codec: Any) -> None:
    values = np.frombuffer(b"abcdefghijkl", "V3")
    document = array_document((4,), data_type="r24", fill_value=[0, 0, 0], codecs=[codec])
    assert stored(place, document, values) == b"abcdefghijkl"
    assert place.open(document, {"c/0": b"lkjihgfedcba"})[...].tobytes() == b"lkjihgfedcba"


@pytest.mark.spec("V3-BYTES-08")
@pytest.mark.parametrize("data_type", ["string", "bytes", "variable_length_bytes"])
@pytest.mark.parametrize("codecs", [[LITTLE], [PLAIN], [sharding([2], [LITTLE])]], ids=json.dumps)
def test_elements_of_varying_size_are_refused(data_type: str, codecs: list[Any]) -> None:
    with pytest.raises(MetadataValidationError, match="vlen"):
        opened(array_document(data_type=data_type, fill_value="", codecs=codecs))
    with pytest.raises(BaseZarrError):
        tessarr.create(shape=4, chunks=4, dtype=str, codecs=codecs, store={})


@pytest.mark.spec("V3-BYTES-09")
@pytest.mark.parametrize(("shape", "key"), [((), "c"), ((1,), "c/0"), ((1, 1, 1), "c/0/0/0")])
def test_one_element_is_stored_whatever_the_rank(place: Place, shape: tuple[int, ...], key: str) -> None:
    document = array_document(shape, data_type="int16", codecs=[BIG])
    assert stored(place, document, 258) == b"\1\2"
    assert place.keys() == [key]
    assert place.open(document, {key: b"\2\1"})[...].reshape(-1).tolist() == [513]


@pytest.mark.spec("V3-BYTES-09")
@pytest.mark.parametrize("given", ["<f4", ">f4", ">f8", "<i2", ">i2"])
@pytest.mark.parametrize(("codec", "expected"), [(LITTLE, "0000803f00000040"), (BIG, "3f80000040000000")])
def test_values_of_any_byte_order_are_converted(place: Place, given: str, codec: Any, expected: str) -> None:
    document = array_document((2,), data_type="float32", codecs=[codec])
    assert stored(place, document, np.array([1, 2], given)).hex() == expected
    z = array_of(tessarr.open(place.store, mode="r+"))
    assert z.dtype == np.dtype("f4")
    assert z.dtype.isnative
    z[1:] = np.array([1], given)
    assert z[...].tolist() == [1, 1]


# -- transpose -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("V3-TRANS-01")
@pytest.mark.parametrize(
    "configuration",
    [
        {"order": order}
        for order in ([0, 0], [1, 2], [0], [-1, 0], ["0", "1"], [0, 1, 2], [True, False], [0.0, 1], None, 1)
    ]
    + [{}, {"order": [1, 0], "axes": 2}, {"order": "K"}],
    ids=json.dumps,
)
def test_the_order_is_a_permutation_of_the_axes(configuration: dict[str, Any]) -> None:
    codecs = [{"name": "transpose", "configuration": configuration}, LITTLE]
    with pytest.raises(MetadataValidationError, match=r"transpose|order"):
        opened(array_document((2, 2), codecs=codecs))
    with pytest.raises(BaseZarrError):
        tessarr.create(shape=(2, 2), chunks=(2, 2), dtype="i4", codecs=codecs, store={})


@pytest.mark.spec("V3-TRANS-02")
def test_axis_i_of_what_is_stored_is_axis_order_i(place: Place) -> None:
    values = np.arange(24).reshape(2, 3, 4)
    document = array_document((2, 3, 4), data_type="uint8", fill_value=99, codecs=[transpose(2, 0, 1), PLAIN])
    b = np.frombuffer(stored(place, document, values), "u1").reshape(4, 2, 3)
    assert b[1, 0, 2] == values[0, 2, 1] == 9
    for position in np.ndindex(2, 3, 4):
        assert b[position[2], position[0], position[1]] == values[position]
    z = array_of(tessarr.open(place.store, mode="r"))
    assert (z[...] == values).all()
    assert (z[1, 1:, ::3] == values[1, 1:, ::3]).all()


@pytest.mark.spec("V3-TRANS-03")
@pytest.mark.parametrize(("order", "permutation"), [("C", [0, 1]), ("F", [1, 0])])
def test_the_old_constants_are_read_with_a_warning_and_refused_when_strict(
    place: Place, order: str, permutation: list[int]
) -> None:
    old = array_document((2, 3), codecs=[{"name": "transpose", "configuration": {"order": order}}, LITTLE])
    values = np.arange(6, dtype="<i4").reshape(2, 3)
    with pytest.warns(ZarrRuntimeWarning, match="order"):
        z = place.open(old, {"c/0/0": values.transpose(permutation).tobytes()})
    assert (z[...] == values).all()
    store = store_of({"": old})
    with tessarr.config.set({"strict": True}), pytest.raises(MetadataValidationError, match="order"):
        tessarr.open(store, mode="r")
    created: dict[str, bytes] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tessarr.create(shape=(2, 3), dtype="i4", codecs=old["codecs"], store=created)
    assert stored_json(created)["codecs"][0] == transpose(*permutation)


@pytest.mark.spec("V3-TRANS-04")
def test_an_array_without_axes_has_the_empty_order(place: Place) -> None:
    assert stored(place, array_document((), codecs=[transpose(), LITTLE]), 7) == b"\7\0\0\0"
    assert array_of(tessarr.open(place.store))[()] == 7


@pytest.mark.spec("V3-TRANS-05")
def test_transposes_compose(place: Place) -> None:
    values = np.arange(24, dtype="<i4").reshape(2, 3, 4)
    document = array_document((2, 3, 4), codecs=[transpose(1, 2, 0), transpose(2, 1, 0), LITTLE])
    expected = values.transpose(1, 2, 0).transpose(2, 1, 0)
    assert stored(place, document, values) == expected.tobytes()
    assert (array_of(tessarr.open(place.store))[...] == values).all()


@pytest.mark.spec("V3-TRANS-05")
def test_before_sharding_the_inner_chunks_are_in_the_transposed_axes(place: Place) -> None:
    values = np.arange(128, dtype="<i4").reshape(8, 16)
    data = stored(
        place, array_document((8, 16), codecs=[transpose(1, 0), sharding([8, 4], index_codecs=[LITTLE])]), values
    )
    index = np.frombuffer(data[-64:], "<u8").reshape(2, 2, 2)
    for i, j in np.ndindex(2, 2):
        offset, nbytes = index[i, j].tolist()
        inner = np.frombuffer(data[offset : offset + nbytes], "<i4").reshape(8, 4)
        assert (inner == values.T[8 * i : 8 * i + 8, 4 * j : 4 * j + 4]).all()
    z = array_of(tessarr.open(place.store, mode="r+"))
    z[3, 5] = -1
    values[3, 5] = -1
    assert (z[...] == values).all()
    assert (z[2:7:2, 4] == values[2:7:2, 4]).all()
    assert (z.oindex[[6, 1], [15, 0, 3]] == values[np.ix_([6, 1], [15, 0, 3])]).all()
    assert z.vindex[[3, 7], [5, 15]].tolist() == [-1, 127]


@pytest.mark.spec("V3-TRANS-05")
def test_inside_sharding_a_transpose_sees_the_inner_chunk(place: Place) -> None:
    values = np.arange(24, dtype="<i4").reshape(4, 6)
    data = stored(place, array_document((4, 6), codecs=[sharding([2, 3], [transpose(1, 0), LITTLE])]), values)
    assert np.frombuffer(data[:24], "<i4").tolist() == values[:2, :3].T.reshape(-1).tolist()
    assert (array_of(tessarr.open(place.store))[...] == values).all()


@pytest.mark.spec("V3-TRANS-06")
def test_codecs_after_a_transpose_see_c_order_of_its_result(place: Place) -> None:
    import gzip

    values = np.arange(6, dtype="<i4").reshape(2, 3)
    compressed = {"name": "gzip", "configuration": {"level": 0}}
    for tail in ([compressed], [CRC], [compressed, CRC]):
        data = stored(place, array_document((2, 3), codecs=[transpose(1, 0), LITTLE, *tail]), values)
        data = data[:-4] if CRC in tail else data
        plain = gzip.decompress(data) if compressed in tail else data
        assert plain == np.ascontiguousarray(values.T).tobytes()
