"""Chunk key encodings that are proposed for the registry, in both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
from tessarr.errors import MetadataValidationError
from tessarr.keys.affix import DefaultSuffixKeyEncoding, PrefixKeyEncoding, SuffixKeyEncoding
from tessarr.keys.base import ChunkKeyEncoding, Slot
from tessarr.keys.default import DefaultKeyEncoding
from tessarr.keys.fanout import FanoutKeyEncoding
from tessarr.keys.template import TemplateKeyEncoding
from tessarr.keys.templated import check_template, check_text
from tessarr.keys.v2 import V2KeyEncoding

# The table of pull request 69: template, separator, grid index, key.
EXAMPLES = [
    ("c/{*}", "/", (11, 22, 33), "c/11/22/33"),
    ("{*}", ".", (11, 22, 33), "11.22.33"),
    ("prefix/{*}", "/", (11, 22, 33), "prefix/11/22/33"),
    ("{*}.suffix", "_", (11, 22, 33), "11_22_33.suffix"),
    ("{2}/{0}/{1}", ".", (11, 22, 33), "33/11/22"),
    ("{-1}/{*}", "/", (11, 22, 33), "33/11/22"),
    ("{*:04}", "/", (11, 22, 33), "0011/0022/0033"),
    ("{*:02}", "/", (111, 2, 33), "111/02/33"),
]
ALL: list[ChunkKeyEncoding] = [
    FanoutKeyEncoding(),
    FanoutKeyEncoding(100),
    TemplateKeyEncoding("a{{{-1:03}}}b1c{*:02}.png", "1x"),
    TemplateKeyEncoding("{*}", "-"),
    PrefixKeyEncoding("level/1", V2KeyEncoding("/")),
    SuffixKeyEncoding("9.tiff"),
    SuffixKeyEncoding("/0", FanoutKeyEncoding(100)),
    PrefixKeyEncoding("7", SuffixKeyEncoding("8", V2KeyEncoding())),
    DefaultSuffixKeyEncoding(".bin", DefaultKeyEncoding(".")),
]
indices = st.lists(st.integers(0, 10**7) | st.sampled_from([0, 9, 10, 99, 100, 999, 1000]), min_size=2, max_size=4)


@pytest.mark.spec("REG-03")
@pytest.mark.parametrize(("template", "separator", "coords", "key"), EXAMPLES)
def test_template_spells_the_examples_of_the_proposal(template: str, separator: str, coords: Any, key: str) -> None:
    for member in ("template", "format"):
        encoding = TemplateKeyEncoding.from_json({member: template, "separator": separator})
        assert (encoding.encode(coords), encoding.decode(key, 3)) == (key, coords)
        assert encoding.to_json()["configuration"] == {"template": template, "separator": separator}


@pytest.mark.spec("REG-01")
@pytest.mark.parametrize(
    ("coords", "key"),
    [
        ((), "c"),
        ((0,), "c/0/000"),
        ((12,), "c/0/012"),
        ((1234, 5, 0, 6789012), "c/1/001/234/0/005/0/000/2/006/789/012"),
    ],
)
def test_fanout_spells_the_examples_of_the_proposal(coords: Any, key: str) -> None:
    assert FanoutKeyEncoding.from_json({}).encode(coords) == key
    assert FanoutKeyEncoding().decode(key, len(coords)) == coords


@pytest.mark.spec("REG-02")
def test_fanout_rounds_its_number_down_and_writes_what_holds() -> None:
    for given_, held in ((100, 100), (250, 100), (1234, 1000), (9999, 1000), (10000, 10000)):
        assert FanoutKeyEncoding(given_).to_json()["configuration"] == {"max_children": held}
    for wrong in (99, 0, -1, 100.0, "100", True, None, 10**19):
        with pytest.raises(MetadataValidationError):
            FanoutKeyEncoding.from_json({"max_children": wrong})


@pytest.mark.spec("REG-05", "REG-06")
def test_prefix_and_suffix_stand_around_the_keys_of_another_encoding() -> None:
    prefix = PrefixKeyEncoding.from_json({"prefix": "x/", "base_encoding": "v2"})
    assert prefix.encode((0, 0, 0)) == "x/0.0.0"
    suffix = SuffixKeyEncoding.from_json({"suffix": ".shard.zip", "base-encoding": {"name": "v2"}})
    assert suffix.encode((1, 2)) == "1.2.shard.zip"
    assert suffix.to_json()["configuration"] == {
        "suffix": ".shard.zip",
        "base_encoding": {"name": "v2", "configuration": {"separator": "."}},
    }
    assert SuffixKeyEncoding.from_json({"suffix": ".tiff"}).encode((1, 2)) == "c/1/2.tiff"


@pytest.mark.parametrize("encoding", ALL, ids=repr)
@given(coords=indices)
def test_a_key_is_read_back_and_no_other_spelling_is(encoding: ChunkKeyEncoding, coords: list[int]) -> None:
    key = encoding.encode(tuple(coords))
    assert encoding.template(len(coords)) is not None
    assert encoding.decode(key, len(coords)) == tuple(coords)
    assert encoding.decode(key, len(coords) + 1) is None
    for wrong in (key + "0", "0" + key, key[:-1], key[1:], key.replace("/", "//", 1) + "/", key.upper() + "X"):
        found = encoding.decode(wrong, len(coords))
        assert found is None or encoding.encode(found) == wrong


@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_an_encoding_comes_back_from_its_document(encoding: ChunkKeyEncoding) -> None:
    document = encoding.to_json()
    again = type(encoding).from_json(document["configuration"])  # type: ignore[arg-type]
    assert again == encoding
    assert hash(again) == hash(encoding)
    assert again.to_json() == document
    assert sum(encoding == other for other in ALL) == 1
    assert encoding != object()
    assert len({hash(other) for other in ALL}) == len(ALL)


@pytest.mark.spec("REG-07")
@pytest.mark.parametrize(
    ("template", "separator"),
    [
        ("{0}{1}", None), ("{0}1{1}", None), ("{*}", ""), ("{*}", "7"), ("{0:02}{1:02}", None),  # keys of two chunks
        ("{0}", None), ("{0}/{0}/{1}", None), ("{0}/{2}", None), ("{-3}/{*}", "/"), ("{0}/{1}/{*}", "/"),
        ("{0}/{-2}", None), ("{0}/{1}/", None), ("{0}/./{1}", None), ("{*}", "/./"),
    ],
)  # fmt: skip
def test_a_template_that_does_not_fit_two_dimensions_is_refused(template: str, separator: str | None) -> None:
    with pytest.raises(MetadataValidationError):
        TemplateKeyEncoding(template, separator).template(2)
    values: dict[str, bytes] = {}
    keys = {"name": "template", "configuration": {"template": template}}
    keys["configuration"] |= {} if separator is None else {"separator": separator}  # type: ignore[operator]
    with pytest.raises(MetadataValidationError):
        tessarr.create_array(values, shape=(4, 4), chunks=(2, 2), dtype="u1", chunk_key_encoding=keys)
    assert not values


@pytest.mark.spec("REG-04")
def test_a_document_whose_template_does_not_fit_is_refused() -> None:
    values: dict[str, bytes] = {}
    tessarr.create_array(values, shape=(4,), chunks=(2,), dtype="u1", chunk_key_encoding=_template("c/{0}"))
    values["zarr.json"] = bytes(values["zarr.json"]).replace(b"c/{0}", b"c/{1}")
    with pytest.raises(MetadataValidationError) as caught:
        tessarr.open_array(values)
    assert caught.value.problems[0].loc[0] == "chunk_key_encoding"


def _template(text: str) -> dict[str, Any]:
    return {"name": "template", "configuration": {"template": text}}


@pytest.mark.spec("REG-04")
@pytest.mark.parametrize(
    "text",
    ["", "c", "{{0}}", "{", "}", "{0", "0}", "{a}", "{0:4}", "{0:0}", "{-0}", "{00}", "/{0}", "../{0}", "a\\{0}", "a\0{0}",
     "a//{0}", "{0}/zarr.json", "{*}", "{*}/{*}", "{0:0100}", "{" * 2000, 5, None],
)  # fmt: skip
def test_what_is_no_template_is_refused(text: Any) -> None:
    with pytest.raises(MetadataValidationError):
        TemplateKeyEncoding.from_json({"template": text})


@pytest.mark.parametrize(
    ("configuration", "member", "kind", "wrong"),
    [
        ({"template": "{0"}, "template", "value", "has an unmatched brace (write {{ or }} for a brace), got '{0'"),
        ({"template": "{0}}"}, "template", "value", "has an unmatched brace (write {{ or }} for a brace), got '{0}}'"),
        ({"template": "c"}, "template", "value", "must name at least one index, got 'c'"),
        ({"template": "/{0}"}, "template", "value", "must not begin with '/', got '/{0}'"),
        ({"template": "{*}/{*}", "separator": "/"}, "template", "value", "may hold {*} only once"),
        ({"template": "{*}/{*}/{*}", "separator": "/"}, "template", "value", "may hold {*} only once"),
        ({"template": "{*}"}, "template", "value", "needs a separator for {*}"),
        ({"template": "a//{0}"}, "template", "value", "must not hold '//', got 'a//{0}'"),
        ({"template": "{0}", "separator": 5}, "separator", "value", "must be a string, got 5"),
        ({"template": "{0}", "separator": "a//"}, "separator", "value", "must not hold '//', got 'a//'"),
        ({}, "template", "missing", "is required once"),
        ({"template": "{0}", "format": "{0}"}, "template", "value", "is required once"),
        (
            {"template": "{0}", "turbo": 1}, "turbo", "unknown",
            "'turbo' is not a member of the template key encoding's configuration",
        ),
    ],
)  # fmt: skip
def test_it_is_said_what_is_wrong_with_a_template(
    configuration: dict[str, Any], member: str, kind: str, wrong: str
) -> None:
    with pytest.raises(MetadataValidationError, match="invalid template chunk key encoding") as caught:
        TemplateKeyEncoding.from_json(configuration)
    found = [(problem.loc, problem.kind, problem.message) for problem in caught.value.problems]
    assert found == [((member,), kind, wrong)]


@pytest.mark.parametrize(
    ("template", "ndim", "wrong"),
    [
        ("{0}/{*}", 1, "{*} matches no axis"),
        ("{1}", 1, "there is no axis 1"),
        ("{-2}", 1, "there is no axis -2"),
        ("{0}", 2, "names the axes [0], must name each of 2 once"),
        ("{0}{1}", 2, "has nothing between two indices: different chunks would have the same key"),
        ("{0}12{1}", 2, "has only digits, '12', between two indices: different chunks would have the same key"),
        ("{0}/{1}/", 2, "gives keys such as '0/0/', in which a part between slashes is empty or only periods"),
        ("{0}/./{1}", 2, "gives keys such as '0/./0', in which a part between slashes is empty or only periods"),
    ],
)
def test_it_is_said_why_a_template_does_not_fit(template: str, ndim: int, wrong: str) -> None:
    with pytest.raises(MetadataValidationError, match=f"the template.* does not fit {ndim} dimensions") as caught:
        TemplateKeyEncoding(template, "/").template(ndim)
    found = [(problem.loc, problem.kind, problem.message) for problem in caught.value.problems]
    assert found == [((), "value", wrong)]


def test_a_template_has_no_empty_text() -> None:
    assert TemplateKeyEncoding("{0}{*}c{{", "/").parts(2) == (Slot(0), Slot(1), "c", "{")
    assert TemplateKeyEncoding("{-1:03}/{*}", "/").parts(2) == (Slot(1, 3), "/", Slot(0))
    assert TemplateKeyEncoding("9{*:02}1", ".").template(2) == ("9", Slot(0, 2), ".", Slot(1, 2), "1")
    assert TemplateKeyEncoding("{0}").to_json() == {"name": "template", "configuration": {"template": "{0}"}}


def test_text_between_two_indices_is_taken_as_a_whole() -> None:
    assert TemplateKeyEncoding("{0}a{{2{1}").template(2) == (Slot(0), "a", "{", "2", Slot(1))
    assert TemplateKeyEncoding("X/{0}.X").template(1) == ("X/", Slot(0), ".X")
    with pytest.raises(MetadataValidationError) as caught:
        check_template("new", (Slot(0), "", Slot(1)), 2)
    assert caught.value.problems[0].message.startswith("has nothing between two indices")
    with pytest.raises(MetadataValidationError, match="the template chunk key encoding does not fit"):
        TemplateKeyEncoding("{0}12{1}").template(2)


def test_digits_of_the_text_after_an_index_are_not_part_of_it() -> None:
    encoding = TemplateKeyEncoding("{0}/{1}9.png")
    assert encoding.decode(encoding.encode((12, 34)), 2) == (12, 34)
    assert TemplateKeyEncoding("{0}{1}").decode("12", 2) is None
    assert TemplateKeyEncoding("{0}").decode("12", 2) is None
    assert TemplateKeyEncoding("{0}").decode("9" * 1024, 1) == (int("9" * 1024),)
    assert TemplateKeyEncoding("{0}").decode("9" * 1025, 1) is None


@pytest.mark.parametrize(
    ("kind", "configuration"),
    [
        (TemplateKeyEncoding, {"template": "{0}", "format": "{0}"}),
        (TemplateKeyEncoding, {}),
        (TemplateKeyEncoding, {"template": "{0}", "turbo": 1}),
        (FanoutKeyEncoding, {"turbo": 1}),
        (PrefixKeyEncoding, {"prefix": "x/"}),
        (PrefixKeyEncoding, {"prefix": "", "base_encoding": "v2"}),
        (PrefixKeyEncoding, {"prefix": "/x", "base_encoding": "v2"}),
        (PrefixKeyEncoding, {"prefix": "x/../", "base_encoding": "v2"}),
        (PrefixKeyEncoding, {"prefix": "x/", "base_encoding": "nobody"}),
        (PrefixKeyEncoding, {"prefix": "x/", "base_encoding": 7}),
        (PrefixKeyEncoding, {"prefix": "x/", "base_encoding": "v2", "base-encoding": "v2"}),
        (SuffixKeyEncoding, {}),
        (SuffixKeyEncoding, {"suffix": "x/"}),
        (SuffixKeyEncoding, {"suffix": "/zarr.json"}),
        (SuffixKeyEncoding, {"suffix": ".t", "turbo": 1}),
        (DefaultSuffixKeyEncoding, {"separator": "/"}),
        (DefaultSuffixKeyEncoding, {"suffix": ".t", "separator": "-"}),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(kind: Any, configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        kind.from_json(configuration)


def test_encodings_within_each_other_without_end_are_refused_calmly() -> None:
    nested: dict[str, Any] = {"name": "v2"}
    for _ in range(400):
        nested = {"name": "suffix", "configuration": {"suffix": "x", "base_encoding": nested}}
    with pytest.raises(MetadataValidationError, match="nested encodings"):
        SuffixKeyEncoding.from_json(nested["configuration"])


@pytest.mark.spec("REG-08")
@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_both_engines_use_the_same_keys(encoding: ChunkKeyEncoding, tmp_path: Path) -> None:
    values = np.arange(1, 1 + 13 * 300, dtype="u2").reshape(13, 300)
    for engine in ("native", "reference"):
        place = tmp_path / engine
        with tessarr.config.set({"engine": engine}):
            z = tessarr.create_array(
                str(place), shape=(13, 300), chunks=(5, 2), dtype="u2", chunk_key_encoding=encoding
            )
            z[...] = values
            assert z.engine.name == engine
            z.resize((13, 100))
            z.resize((13, 300))
        with tessarr.config.set({"engine": "reference" if engine == "native" else "native"}):
            again = tessarr.open_array(str(place))
            assert (again[:, :100] == values[:, :100]).all()
            assert not again[:, 100:].any()
            assert again[12, 99] == values[12, 99]
    expected = {"zarr.json", *(encoding.encode((i, j)) for i in range(3) for j in range(50))}
    for engine in ("native", "reference"):
        place = tmp_path / engine
        assert {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()} == expected


def test_keys_with_a_suffix_that_zarrs_wrote_are_read(tmp_path: Path) -> None:
    zarrista = pytest.importorskip("zarrista")
    store = zarrista.store.FilesystemStore(str(tmp_path))
    metadata = {
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
        "codecs": [{"name": "bytes"}], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "zarrs.default_suffix", "configuration": {"separator": "/", "suffix": ".tiff"}},
    }  # fmt: skip
    node = zarrista.Array.from_metadata(metadata, store)
    node.store_metadata()
    node.store_chunk([1], zarrista.ArrayBytes(b"\x07\x08"))
    assert (tmp_path / "c" / "1.tiff").read_bytes() == b"\x07\x08"
    z = tessarr.open_array(str(tmp_path), mode="r+")
    assert z[...].tolist() == [0, 0, 7, 8]
    assert z.metadata.to_dict()["chunk_key_encoding"] == metadata["chunk_key_encoding"]


def test_text_of_a_template_has_at_most_1024_characters() -> None:
    assert check_text("x" * 1024) is None
    assert check_text("x" * 1025) == "must have at most 1024 characters, got 1025"
