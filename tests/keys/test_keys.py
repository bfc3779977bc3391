"""Both chunk key encodings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr import registry
from tessarr.errors import MetadataValidationError
from tessarr.keys.base import ChunkKeyEncoding
from tessarr.keys.default import DefaultKeyEncoding
from tessarr.keys.v2 import V2KeyEncoding

ALL: list[ChunkKeyEncoding] = [kind(separator) for kind in (DefaultKeyEncoding, V2KeyEncoding) for separator in "/."]


@pytest.mark.spec("V3-CKE-01")
def test_default_joins_with_a_slash_unless_told() -> None:
    for encoding in (
        DefaultKeyEncoding(),
        DefaultKeyEncoding.from_json({}),
        DefaultKeyEncoding.from_json({"separator": "/"}),
    ):
        assert encoding.encode((1, 23, 45)) == "c/1/23/45"


@pytest.mark.spec("V3-CKE-02")
def test_default_joins_with_dots_when_told() -> None:
    assert DefaultKeyEncoding.from_json({"separator": "."}).encode((1, 23, 45)) == "c.1.23.45"


@pytest.mark.spec("V3-CKE-03")
@pytest.mark.parametrize("separator", ["/", "."])
def test_default_names_the_chunk_of_a_0d_array_c(separator: str) -> None:
    encoding = DefaultKeyEncoding(separator)
    assert encoding.encode(()) == "c"
    assert encoding.decode("c", 0) == ()
    assert [encoding.decode(key, 0) for key in ("", "c/", "c.", "0", "c/0", "C")] == [None] * 6


@pytest.mark.spec("V3-CKE-04")
@pytest.mark.parametrize("separator", ["-", "", "//", None, 0, "./", ["/"]])
@pytest.mark.parametrize("kind", [DefaultKeyEncoding, V2KeyEncoding])
def test_another_separator_is_refused(kind: type[DefaultKeyEncoding | V2KeyEncoding], separator: Any) -> None:
    with pytest.raises(MetadataValidationError) as caught:
        kind.from_json({"separator": separator})
    assert [(problem.loc, problem.kind) for problem in caught.value.problems] == [(("separator",), "value")]
    with pytest.raises(MetadataValidationError, match=f"invalid {kind.name} chunk key encoding"):
        kind(separator)


@pytest.mark.parametrize("kind", [DefaultKeyEncoding, V2KeyEncoding])
def test_an_unknown_member_is_refused(kind: type[DefaultKeyEncoding | V2KeyEncoding]) -> None:
    with pytest.raises(MetadataValidationError) as caught:
        kind.from_json({"separator": "/", "prefix": "d"})
    assert [(problem.loc, problem.kind) for problem in caught.value.problems] == [(("prefix",), "unknown")]
    assert f"invalid {kind.name} chunk key encoding" in str(caught.value)


@pytest.mark.spec("V3-CKE-05", "V2-43", "V1-12")
def test_v2_joins_with_dots_unless_told() -> None:
    assert V2KeyEncoding.from_json({}).encode((1, 23, 45)) == "1.23.45"
    assert V2KeyEncoding.from_json({"separator": "/"}).encode((1, 23, 45)) == "1/23/45"
    assert [V2KeyEncoding().encode(coords) for coords in ((0, 0), (2, 4))] == ["0.0", "2.4"]


@pytest.mark.spec("V3-CKE-06")
@pytest.mark.parametrize("separator", ["/", "."])
def test_v2_names_the_chunk_of_a_0d_array_0(separator: str) -> None:
    encoding = V2KeyEncoding(separator)
    assert encoding.encode(()) == "0"
    assert encoding.decode("0", 0) == ()
    assert [encoding.decode(key, 0) for key in ("", "00", "c", "0.0", "1")] == [None] * 5


@pytest.mark.spec("V3-CKE-08")
@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_indices_are_plain_decimal(encoding: ChunkKeyEncoding) -> None:
    assert encoding.encode((1000000,)).endswith("1000000")
    assert encoding.encode((2**62, 0)).count(str(2**62)) == 1


@pytest.mark.spec("V3-CKE-09")
@pytest.mark.parametrize("encoding", ALL, ids=repr)
@given(st.lists(st.integers(0, 2**64), max_size=4).map(tuple))
def test_every_key_decodes_to_its_chunk(encoding: ChunkKeyEncoding, coords: tuple[int, ...]) -> None:
    assert encoding.decode(encoding.encode(coords), len(coords)) == coords


@pytest.mark.spec("V3-CKE-09")
@pytest.mark.parametrize(
    "tail",
    [
        "01{}2",
        "1",
        "1{}2{}3",
        "1{}2{}",
        "{}1{}2",
        "1{}{}2",
        "-1{}2",
        "+1{}2",
        "1{} 2",
        "1{}2\n",
        "1{}٢",
        "1{}²",
        "1_0{}2",
        "1{}0x2",
        "a{}b",
        "",
        "1{}" + "9" * 5000,
    ],
)
@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_other_spellings_are_no_chunk(encoding: ChunkKeyEncoding, tail: str) -> None:
    separator = encoding.encode((1, 2))[-2]
    head = encoding.encode((1, 2))[:-3]
    assert encoding.decode(head + tail.format(*[separator] * 2), 2) is None


@pytest.mark.spec("V3-CKE-09")
def test_keys_of_other_encodings_and_documents_are_no_chunk() -> None:
    assert [DefaultKeyEncoding().decode(key, 2) for key in ("1/2", "c.1.2", "C/1/2", "cc/1/2", "zarr.json")] == [
        None
    ] * 5
    assert [V2KeyEncoding().decode(key, 2) for key in ("c.1.2", "1/2", ".zarray", ".zattrs")] == [None] * 4


@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_documents_round_trip(encoding: ChunkKeyEncoding) -> None:
    document: Any = encoding.to_json()
    kind: Any = registry.get("chunk_key_encoding", document["name"])
    again = kind.from_json(document["configuration"])
    assert again == encoding
    assert hash(again) == hash(encoding)
    assert sum(encoding == other for other in ALL) == 1
    assert len({hash(other) for other in ALL}) == len(ALL)


@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_a_template_spells_the_key_of_each_chunk(encoding: ChunkKeyEncoding) -> None:
    for coords in ((), (7,), (0, 12), (3, 0, 100)):
        template = encoding.template(len(coords))
        assert template is not None
        spelled = [part if isinstance(part, str) else part.spell(coords[part.axis]) for part in template]
        assert "".join(spelled) == encoding.encode(coords)
