"""Intents and records of transactions of level *publish*: how they are stored, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tessarr.core.claims.intents import (
    Change,
    Intent,
    Record,
    Region,
    claim_of,
    intent_in,
    intent_of,
    released,
    with_intent,
)
from tessarr.errors import JournalError, MetadataValidationError
from tessarr.metadata.reservations import Region as Reserved
from tessarr.metadata.reservations import Reservations, parse

ID = "0123456789abcdef"
INTENT = Intent(ID, 1)
MEMBER = {"must_understand": False, "id": ID, "up": 1}
KEY = "g/a/zarr.json"
RECORD_KEY = f"g/.tessarr_transaction.{ID}"
ARRAY: dict[str, Any] = {"zarr_format": 3, "node_type": "array", "shape": [10, 4]}


def stored(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=2).encode()


def loaded(data: bytes) -> Any:
    return json.loads(data)


GOOD = Record(
    id=ID,
    state="pending",
    since=1000,
    stores=True,
    ended=None,
    changes={
        "zarr.json": Change(b'{"zarr_format":3}', b'{"zarr_format":3,"n":1}'),
        "a/zarr.json": Change(stored(ARRAY), b"{}", Region(0, 3)),
        "new/zarr.json": Change(None, b'{"node_type":"group"}'),
    },
)


@pytest.mark.parametrize(
    ("up", "key", "record"),
    [
        (0, KEY, f"g/a/.tessarr_transaction.{ID}"),
        (1, KEY, RECORD_KEY),
        (2, KEY, f".tessarr_transaction.{ID}"),
        (3, KEY, None),
        (0, "zarr.json", f".tessarr_transaction.{ID}"),
        (1, "zarr.json", None),
    ],
)
def test_the_record_is_so_many_levels_above_the_node(up: int, key: str, record: str | None) -> None:
    assert Intent(ID, up).record_key(key) == record


def test_an_intent_is_stored_in_a_document_and_found() -> None:
    document = with_intent({"zarr_format": 3}, INTENT)
    assert document == {"zarr_format": 3, "tessarr_transaction": MEMBER}
    assert intent_of(document) == intent_in(stored(document), KEY) == INTENT
    assert intent_in(None, KEY) is None
    assert intent_in(b"{}", KEY) is None
    assert intent_in(stored(document)[:-1], KEY) is None


@pytest.mark.parametrize(
    "member",
    [
        None,
        [ID, 1],
        {"id": ID},
        {"up": 1},
        *({"id": bad, "up": 1} for bad in (5, "", "-", "a b", "a" * 65, "é", "a/b")),
        *({"id": ID, "up": bad} for bad in (-1, 1000, True, "1", 1.0)),
    ],
)
def test_a_member_of_another_form_is_no_intent(member: object) -> None:
    assert intent_of({"tessarr_transaction": member}) is None


@pytest.mark.parametrize("member", [{"id": "a" * 64, "up": 999}, {"id": "0-a-B", "up": 0}])
def test_an_id_is_letters_digits_and_hyphens(member: dict[str, Any]) -> None:
    assert intent_of({"tessarr_transaction": member}) == Intent(**member)
    assert intent_of([member]) is None


def test_a_document_is_claimed_by_its_intent_and_the_reservation_of_its_rows() -> None:
    new, group, rows = (GOOD.changes[key] for key in ("new/zarr.json", "zarr.json", "a/zarr.json"))
    assert loaded(new.claimed(KEY, INTENT, 1000)) == {"tessarr_transaction": MEMBER}
    assert loaded(group.claimed(KEY, INTENT, 1000)) == {"zarr_format": 3, "tessarr_transaction": MEMBER}
    claimed = loaded(rows.claimed(KEY, INTENT, 1000))
    assert parse(claimed) == Reservations(axis=0, stop=13, reserved=(Reserved(10, 13, ID, 1000),))
    assert {name: claimed[name] for name in ARRAY} == ARRAY
    assert claimed["tessarr_transaction"] == MEMBER
    other = Reservations(axis=1, stop=6, reserved=(Reserved(4, 6, "other", 900),))
    second = Change(stored(other.with_member(ARRAY)), b"{}", Region(1, 2))
    assert parse(loaded(second.claimed(KEY, INTENT, 1000))) == other.reserve(2, ID, 1000)


@pytest.mark.parametrize(
    ("document", "axis"),
    [
        ({"zarr_format": 3}, 0),
        ({**ARRAY, "shape": 10}, 0),
        ({**ARRAY, "shape": [10, 4]}, 2),
        ({**ARRAY, "shape": [-1, 4]}, 0),
        ({**ARRAY, "shape": ["10", 4]}, 0),
        ([10], 0),
    ],
)
def test_rows_of_what_is_no_such_array_are_not_claimed(document: Any, axis: int) -> None:
    with pytest.raises((JournalError, MetadataValidationError)) as caught:
        Change(stored(document), b"{}", Region(axis, 1)).claimed(KEY, INTENT, 0)
    assert KEY in str(caught.value)


MEMBERS: dict[str, Any] = {
    "id": ID,
    "state": "pending",
    "since": 1000,
    "stores": True,
    "helped": False,
    "ended": None,
    "changes": {
        "zarr.json": {"old": '{"zarr_format":3}', "new": '{"zarr_format":3,"n":1}', "region": None},
        "a/zarr.json": {"old": stored(ARRAY).decode(), "new": "{}", "region": [0, 3]},
        "new/zarr.json": {"old": None, "new": '{"node_type":"group"}', "region": None},
    },
}


def test_a_record_is_stored_and_parsed() -> None:
    assert loaded(GOOD.dumps()) == MEMBERS
    assert Record.parse(GOOD.dumps(), RECORD_KEY) == GOOD
    ended = GOOD.with_state("void")
    assert (ended.state, ended.changes) == ("void", GOOD.changes)
    other = Record(id=ID, state="void", since=0, helped=True, ended=0, changes={})
    assert (other.stores, GOOD.helped, GOOD.ended) == (False, False, None)
    assert Record.parse(other.dumps(), f".tessarr_transaction.{ID}") == other
    committed = GOOD.with_state("committed")
    assert Record.parse(committed.dumps(), RECORD_KEY) == committed


CHANGE = MEMBERS["changes"]["a/zarr.json"]


@pytest.mark.parametrize(
    "changed",
    [
        *({"state": bad} for bad in ("done", 1, None)),
        {"id": "another"},
        {"id": 5},
        *({"since": bad} for bad in (-1, 1.5, "0", None, True)),
        *({"stores": bad} for bad in (0, None)),
        *({"helped": bad} for bad in (0, None)),
        *({"ended": bad} for bad in (-1, "0", True)),
        {"changes": []},
        {"changes": None},
        *({"changes": {bad: CHANGE}} for bad in ("a/c/0", "../zarr.json", "a//zarr.json", "zarr.json/x")),
        {"changes": {"a/zarr.json": CHANGE, "a/c/0": CHANGE}},
        *(
            {"changes": {"zarr.json": {**CHANGE, "region": bad}}}
            for bad in ([0], [0, 1, 2], [-1, 3], [0, -3], ["0", 3], 5)
        ),
        *({"changes": {"zarr.json": {**CHANGE, "old": bad}}} for bad in (5, [5])),
        *({"changes": {"zarr.json": {**CHANGE, "new": bad}}} for bad in (5, None)),
    ],
)
def test_a_record_that_no_transaction_has_written_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(JournalError, match="damaged") as caught:
        Record.parse(json.dumps({**MEMBERS, **changed}).encode(), RECORD_KEY)
    assert RECORD_KEY in str(caught.value)


@pytest.mark.parametrize("gone", [*MEMBERS])
def test_a_record_without_one_of_its_members_is_refused(gone: str) -> None:
    rest = {name: value for name, value in MEMBERS.items() if name != gone}
    with pytest.raises(JournalError, match="damaged"):
        Record.parse(json.dumps(rest).encode(), RECORD_KEY)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"id":', b"5"])
def test_what_is_no_object_is_no_record(data: bytes) -> None:
    with pytest.raises(JournalError, match="damaged"):
        Record.parse(data, RECORD_KEY)


def test_a_record_under_another_name_is_refused() -> None:
    with pytest.raises(JournalError, match="damaged"):
        Record.parse(GOOD.dumps(), f"g/.tessarr_transaction.x{ID}")


def test_a_new_document_has_its_intent_in_a_claim_and_then_in_itself() -> None:
    assert claim_of("zarr.json") == ".tessarr_claim"
    assert GOOD.claim_key("new/zarr.json") == "new/.tessarr_claim"
    assert GOOD.claim_key("a/zarr.json") == "a/zarr.json"
    assert intent_in(GOOD.claimed("new/zarr.json"), KEY) == Intent(ID, 1)
    assert intent_in(GOOD.claimed("zarr.json"), KEY) == Intent(ID, 0)
    assert GOOD.claimed("a/zarr.json") == GOOD.changes["a/zarr.json"].claimed("a/zarr.json", INTENT, 1000)
    assert loaded(GOOD.created("new/zarr.json")) == {"node_type": "group", "tessarr_transaction": MEMBER}


def test_chunks_of_new_arrays_may_be_stored_by_a_record_that_says_so_and_creates_one() -> None:
    only_old = {"zarr.json": GOOD.changes["zarr.json"]}
    assert GOOD.may_have_stored_new
    assert not Record(id=ID, state="pending", since=0, stores=False, changes=GOOD.changes).may_have_stored_new
    assert not Record(id=ID, state="pending", since=0, stores=True, changes=only_old).may_have_stored_new


def _record(stores: bool) -> Record:
    return Record(id=ID, state="void", since=1000, stores=stores, changes=GOOD.changes)


def test_a_claim_that_is_void_gives_the_old_document_back() -> None:
    claimed = GOOD.claimed("a/zarr.json")
    assert released(claimed, KEY, _record(False), INTENT) == stored(ARRAY)
    assert loaded(released(claimed, KEY, None, INTENT)) == ARRAY
    kept = loaded(released(claimed, KEY, _record(True), INTENT))
    assert "tessarr_transaction" not in kept
    assert parse(kept) == Reservations(axis=0, stop=13, reserved=(Reserved(10, 13, ID, 1000),))


@pytest.mark.parametrize(("up", "key", "name"), [(0, "g/a/zarr.json", "zarr.json"), (2, KEY, KEY)])
def test_what_is_given_back_is_the_old_document_byte_for_byte(up: int, key: str, name: str) -> None:
    old = b'{ "zarr_format":3,"n" : 1.50 }'
    record = Record(id=ID, state="void", since=1000, changes={name: Change(old, b"{}")})
    claimed = record.claimed(name)
    assert released(claimed, key, record, Intent(ID, up)) == old
    assert released(claimed, key, None, Intent(ID, up)) != old


def test_a_document_that_was_no_document_before_is_not_given_back() -> None:
    alone = GOOD.claimed("new/zarr.json")
    assert loaded(released(alone, "g/new/zarr.json", _record(False), INTENT)) == {}


def test_what_others_changed_meanwhile_stays_when_a_claim_is_void() -> None:
    claimed = loaded(GOOD.claimed("a/zarr.json"))
    data = stored({**claimed, "attributes": {"n": 1}})
    assert loaded(released(data, KEY, _record(False), INTENT)) == {**ARRAY, "attributes": {"n": 1}}
    pending = parse(claimed)
    assert pending is not None
    later = pending.reserve(2, "later", 2000)
    followed = loaded(released(stored(later.with_member(claimed)), KEY, _record(False), INTENT))
    assert parse(followed) == later
    others = Reservations(axis=0, stop=12, reserved=(Reserved(10, 12, "other", 900),))
    untouched = stored(with_intent(others.with_member(ARRAY), INTENT))
    assert parse(loaded(released(untouched, KEY, _record(False), INTENT))) == others


def test_a_document_that_the_record_does_not_name_only_loses_its_intent() -> None:
    data = stored(with_intent({"zarr_format": 3}, INTENT))
    assert loaded(released(data, "g/other/zarr.json", _record(False), INTENT)) == {"zarr_format": 3}


def with_key(key: str) -> bytes:
    return stored({**MEMBERS, "changes": {key: MEMBERS["changes"]["zarr.json"]}})


@pytest.mark.parametrize("key", ["né/zarr.json", "日本/a b/zarr.json", ".a/zarr.json", "c:d?/zarr.json"])
def test_names_of_nodes_in_a_record_may_be_any_text(key: str) -> None:
    assert [*Record.parse(with_key(key), RECORD_KEY).changes] == [key]


@pytest.mark.parametrize(
    "key", ["../zarr.json", "é/../zarr.json", "/zarr.json", "é//zarr.json", "é/zarr.json/", "é/c/0", ""]
)
def test_keys_of_a_record_that_are_of_no_document_below_are_refused(key: str) -> None:
    with pytest.raises(JournalError, match="damaged"):
        Record.parse(with_key(key), RECORD_KEY)
