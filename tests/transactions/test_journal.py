"""The form of a journal: what each is stored as, and what is no journal."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tessarr.errors import JournalError, TessarrError
from tessarr.stores.local.transactions.journal import (
    AnyJournal,
    Journal,
    RootJournal,
    Step,
    SwapJournal,
    dump_pointer,
    is_document,
    parse,
    parse_pointer,
    version_in_journal,
)

ID = "0123456789ab"
ONE: dict[str, Any] = {"tessarr_journal": 1, "id": ID, "directory": "2f"}
TWO: dict[str, Any] = {**ONE, "tessarr_journal": 2, "old": ["a"], "new": ["b"]}
THREE: dict[str, Any] = {
    **ONE,
    "tessarr_journal": 3,
    "name": f".data.zarr.{ID}.tessarr-tmp",
    "old_directory": "30",
    "over": ["a/c/0"],
}
STEP: dict[str, Any] = {"key": "a/c/0", "old": "1:2:3", "new": "4:5:6"}


def sealed(*lines: object) -> bytes:
    """Lines as JSON, and their digest."""
    body = b"".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for line in lines)
    return body + b'{"sha256":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


STORED: list[tuple[AnyJournal, bytes]] = [
    (Journal(ID, "2f", []), sealed(ONE)),
    (
        Journal(
            ID,
            "2f",
            [
                Step("a/c/0", None, "30:1:5"),
                Step("a/c/1", "31:2:6", None),
                Step('ä/"b"/zarr.json', "1:2:3", "4:5:6", 17),
            ],
        ),
        sealed(
            ONE,
            {"key": "a/c/0", "old": None, "new": "30:1:5"},
            {"key": "a/c/1", "old": "31:2:6", "new": None},
            {"key": 'ä/"b"/zarr.json', "old": "1:2:3", "new": "4:5:6", "changed": 17},
        ),
    ),
    (RootJournal(ID, "2f", ("a", "b.c"), ("d",)), sealed({**TWO, "old": ["a", "b.c"], "new": ["d"]})),
    (RootJournal(ID, "2f", (), ()), sealed({**TWO, "old": [], "new": []})),
    (
        SwapJournal(ID, "2f", THREE["name"], "30", [Step("a/c/0", None, "1:2:3")], ("a/c/0", "zarr.json")),
        sealed(
            {**ONE, "tessarr_journal": 3, "name": THREE["name"], "old_directory": "30", "over": ["a/c/0", "zarr.json"]},
            {"key": "a/c/0", "old": None, "new": "1:2:3"},
        ),
    ),
]


@pytest.mark.parametrize(("journal", "stored"), STORED)
def test_a_journal_is_stored_and_parsed(journal: AnyJournal, stored: bytes) -> None:
    assert journal.dump() == stored
    assert parse(stored) == journal


CUT: list[bytes] = [
    b"",
    b'{"sha256":"' + hashlib.sha256(b"").hexdigest().encode() + b'"}\n',
    sealed(ONE).replace(b"2f", b"2e"),
    sealed(ONE, STEP).replace(b"1:2:3", b"1:2:4"),
    sealed(ONE, STEP).rsplit(b"\n", 2)[0] + b"\n",
    sealed(ONE)[: -len(b'{"sha256":""}\n') - 64] + b"{}\n",
    sealed(ONE)[: -len(b'{"sha256":""}\n') - 64] + b'"sha256"\n',
]
WRONG: list[tuple[type[Exception], tuple[object, ...]]] = [
    *((ValueError, ({**ONE, "id": bad},)) for bad in ("0123456789ag", ID[:11], ID + "0", ID.upper(), 12, None)),
    *((ValueError, ({**ONE, "tessarr_journal": bad},)) for bad in (0, 4, "1", None)),
    *((KeyError, ({name: value for name, value in ONE.items() if name != gone},)) for gone in ONE),
    (TypeError, ([ONE],)),
    (TypeError, (ONE, [])),
    *((KeyError, (ONE, {name: value for name, value in STEP.items() if name != gone})) for gone in STEP),
    *((TypeError, (ONE, {**STEP, name: 5})) for name in STEP),
    (TypeError, (ONE, {**STEP, "changed": "5"})),
    (ValueError, (ONE, {**STEP, "key": "a/.c.tessarr-tmp"})),
    (ValueError, (ONE, {**STEP, "key": ".a.tessarr-lock/c"})),
    (TessarrError, (ONE, {**STEP, "key": "../c"})),
    (ValueError, (ONE, STEP, {**STEP, "old": None})),
    *((KeyError, ({name: value for name, value in TWO.items() if name != gone},)) for gone in ("old", "new")),
    *((TypeError, ({**TWO, name: bad},)) for name in ("old", "new") for bad in ("a", ["a", 1], ["a", "a"], {"a": 1})),
    *(
        (ValueError, ({**TWO, "new": ["a", bad]},))
        for bad in ("", ".", "..", "b/c", "b\0c", ".b.tessarr-tmp", ".tessarr-values.tessarr-lock")
    ),
    *(
        (KeyError, ({name: value for name, value in THREE.items() if name != gone},))
        for gone in ("name", "old_directory", "over")
    ),
    *(
        (ValueError, ({**THREE, "name": bad},))
        for bad in (
            5,
            f"data.zarr.{ID}.tessarr-tmp",
            f".data.zarr.{ID}",
            ".data.zarr.ba9876543210.tessarr-tmp",
            f"./data.zarr.{ID}.tessarr-tmp",
            f".\0data.zarr.{ID}.tessarr-tmp",
        )
    ),
    *((TypeError, ({**THREE, "over": bad},)) for bad in ("a", {"a": 1}, [5], None)),
    (ValueError, ({**THREE, "over": [".a.tessarr-tmp"]},)),
]


@pytest.mark.parametrize("data", CUT)
def test_a_journal_that_is_cut_or_changed_is_refused(data: bytes) -> None:
    with pytest.raises(JournalError, match="damaged"):
        parse(data)


@pytest.mark.parametrize(("cause", "lines"), WRONG)
def test_a_journal_that_no_transaction_has_written_is_refused(
    cause: type[Exception], lines: tuple[object, ...]
) -> None:
    with pytest.raises(JournalError, match="damaged") as caught:
        parse(sealed(*lines))
    assert isinstance(caught.value.__cause__, cause)


@pytest.mark.parametrize("above", [0, 1, 64])
def test_a_pointer_is_stored_and_parsed(above: int) -> None:
    stored = dump_pointer(ID, above)
    assert stored == f'{{"tessarr_journal":1,"id":"{ID}","above":{above}}}\n'.encode()
    assert parse_pointer(stored) == (ID, above)


@pytest.mark.parametrize(
    "found",
    [
        *({"id": ID, "above": bad} for bad in (-1, 65, "1", True, None, 1.0)),
        *({"id": bad, "above": 1} for bad in ("", 12, "g" * 12)),
        {"id": ID},
        {"above": 1},
        [],
    ],
)
def test_what_is_no_pointer_points_nowhere(found: object) -> None:
    assert parse_pointer(json.dumps(found).encode()) is None
    assert parse_pointer(b"") is None


def test_a_version_in_a_journal_is_without_the_device() -> None:
    assert version_in_journal("fd00:2f:1a:5") == "2f:1a:5"
    assert version_in_journal(None) is None


def test_documents_are_told_by_their_names_in_any_directory() -> None:
    assert is_document("zarr.json")
    assert is_document("a/b/.zattrs")
    assert not is_document("a/zarr.json/c")
    assert not is_document("a/c/0")
