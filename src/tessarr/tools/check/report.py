"""Represent the findings of a check, with conversion to JSON and back, and to text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tessarr.common.counted import counted
from tessarr.conventions.rules import RULES as CONVENTIONS
from tessarr.types import JSONObject

Severity = Literal["error", "warning", "info"]
Level = Literal["stat", "size", "decode"]

RULES: dict[str, tuple[Severity, str]] = {
    # documents
    "DOC-JSON": ("error", "a metadata document is not JSON"),
    "DOC-DUPLICATE": ("error", "a key that decides what the node is occurs more than once in its object"),
    "ATTR-DUPLICATE": ("warning", "an attribute occurs more than once; the last one is read"),
    "DOC-INVALID": ("error", "a metadata document breaks its specification"),
    "DOC-LENIENT": ("warning", "a metadata document is read although it breaks its specification"),
    "DOC-BOTH": ("error", "an array and a group document share one path"),
    "DOC-FORMATS": ("warning", "a node is described in several formats"),
    "DOC-KEY": ("info", "a .zarray has a member that the OGC standard forbids"),
    "DOC-NAME": ("error", "a node has a name that its format does not allow"),
    "DOC-STRAY": ("info", "a key belongs to no node"),
    # invalid documents of other libraries that can be corrected
    "LEGACY-ENDIAN": ("warning", "the codec is called endian, as before 2024"),
    "LEGACY-ORDER": ("warning", "a transpose order is C or F, as before Zarr v3 was accepted"),
    "LEGACY-CODECS": ("warning", "an array has no codecs, as in GDAL's early v3 files"),
    "LEGACY-NULL": ("warning", "a member is null where it must be absent"),
    "LEGACY-SHORT": ("info", "an extension is written as a name alone, which readers of Zarr 3.0 do not support"),
    "LEGACY-GRID": ("warning", "a grid called regular has lists of lengths, as zarr-python 3.2 wrote rectilinear ones"),
    "LEGACY-CHUNK0": ("warning", "a chunk length is 0 or false on an axis of length 0"),
    "LEGACY-BOOL": ("warning", "a chunk length is true instead of 1"),
    "LEGACY-WORDS": ("warning", "a codec has members that only a faulty schema, example or writer has"),
    "LEGACY-STRUCT": ("warning", "a structured type is written in a legacy form"),
    "LEGACY-FILL": ("warning", "a fill value is written in a form that only some readers support"),
    "LEGACY-BYTEORDER": ("warning", "a type of one byte is written with a byte order"),
    "LEGACY-FILTERS": ("warning", "an empty list of filters is written instead of null"),
    "LEGACY-BOOLFILL": ("warning", "the fill value of booleans is written as 0 or 1"),
    "LEGACY-TEXTORDER": ("warning", "text of fixed length is stored without a byte order"),
    "LEGACY-STRINGS": ("warning", "the codec of objects is written as the compressor"),
    "LEGACY-CODEC": ("warning", "a v2 compressor has members that older readers refuse"),
    "LEGACY-NAN": ("warning", "a document holds a bare NaN or Infinity"),
    "LEGACY-BLOCK": ("info", "a .zgroup holds a consolidated_metadata member"),
    # appends from many machines
    "APPEND-PENDING": ("info", "rows are being appended"),
    "APPEND-HOLE": ("warning", "rows were reserved long ago and are not published"),
    "APPEND-BEHIND": ("warning", "rows are published, and the shape does not have them yet"),
    "APPEND-CLOSED": ("warning", "a resize began long ago and has not ended"),
    "APPEND-VOID": ("info", "rows that a writer reserved and did not store hold the fill value"),
    "APPEND-INVALID": ("error", "the reservations of appends cannot be read"),
    # transactions in object storage
    "TRANSACTION-PENDING": ("info", "a transaction is being committed, or ended a short time ago"),
    "TRANSACTION-LEFT": ("warning", "a process that ended left the record of a transaction"),
    "TRANSACTION-INVALID": ("error", "the record of a transaction cannot be read"),
    "REMOVAL-LEFT": ("warning", "a process that ended while it removed a node left chunks"),
    # hierarchy
    "HIER-NOGROUP": ("error", "nodes exist below a path that is not a group"),
    "HIER-MIXED": ("error", "a node is in a group of another format"),
    "HIER-IN-ARRAY": ("error", "a node is inside an array"),
    "CONS-INVALID": ("error", "consolidated metadata cannot be read"),
    "CONS-KIND": ("info", "consolidated metadata is of a kind that is not read"),
    "CONS-STALE": ("error", "consolidated metadata differs from the node's own document"),
    "CONS-MISSING": ("error", "a node is missing in consolidated metadata"),
    "CONS-EXTRA": ("error", "consolidated metadata has a node that does not exist"),
    # conventions
    **{rule: (severity, meaning) for rule, (severity, meaning, _) in CONVENTIONS.items()},
    # stored values
    "KEY-STRAY": ("info", "a key inside an array is neither a chunk nor a document"),
    "KEY-UNICODE": ("warning", "a name is not in Unicode normalization form C"),
    "KEY-ALIKE": ("warning", "names of one group differ only in Unicode normalization"),
    "KEY-TEMPORARY": ("warning", "a temporary value was left behind"),
    "KEY-OUTSIDE": ("warning", "a chunk lies outside the array's shape"),
    "KEY-SEPARATOR": ("error", "chunks have another separator than the metadata says, so they are not found"),
    "CHUNK-EMPTY": ("error", "a stored chunk has no bytes"),
    "CHUNK-SIZE": ("error", "a stored chunk has the wrong size"),
    "CHUNK-DECODE": ("error", "a stored chunk cannot be decoded"),
    "CHUNK-CHECKSUM": ("error", "a stored chunk does not match its checksum"),
    "CHUNK-READ": ("error", "a stored chunk cannot be read"),
    "SHARD-INDEX": ("error", "a shard's index is truncated or damaged"),
    "SHARD-ENTRY": ("error", "a shard's index points outside the shard"),
    "SHARD-OVERLAP": ("error", "inner chunks of a shard overlap"),
    "SHARD-UNUSED": ("info", "a shard holds bytes that no inner chunk uses"),
    "CHECK-SKIPPED": ("info", "something could not be checked"),
}
"""Rule id → severity and meaning. docs/checking.md has a paragraph on each."""

_ORDER = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Action:
    """Describe what `tessarr.tools.repair` would do about a finding."""

    kind: Literal[
        "rewrite",
        "delete",
        "delete_outside",
        "consolidate",
        "create_group",
        "separator",
        "quarantine",
        "leftovers",
        "end_appends",
        "end_transaction",
        "end_removal",
    ]
    """rewrite a document by the rule; delete a key; delete a chunk if it is outside its array's shape; consolidate again;
    create the group; correct the separator; move a damaged chunk away, so that it reads as fill value (only on explicit
    request: data is given up); remove hidden temporary files; fill rows that an append reserved and did not store;
    complete a transaction that is committed, or undo it, and remove its record; remove what a removal has left."""
    key: str = ""
    """The store key concerned; for consolidate and create_group the path of the group."""
    detail: str = ""
    """The rule for a rewrite, the format for create_group, the separator, the path of the array for delete_outside."""

    def to_json(self) -> JSONObject:
        """Return the action as a JSON object."""
        return {"kind": self.kind, "key": self.key, "detail": self.detail}

    def __str__(self) -> str:
        words = {
            "rewrite": f"rewrite {self.key} ({self.detail})",
            "delete": f"remove {self.key}",
            "delete_outside": f"remove {self.key}",
            "consolidate": f"consolidate /{self.key} again",
            "create_group": f"create the group /{self.key}",
            "separator": f"set dimension_separator to {self.detail!r} in {self.key}",
            "end_appends": f"end what appends and resizes have left in {self.key}",
            "end_transaction": f"end the transaction of the record {self.key}",
            "end_removal": f"remove what is left beside {self.key}",
            "leftovers": "remove hidden temporary files that stopped writers left",
            "quarantine": f"move the damaged {self.key} away; its values become the fill value",
        }
        return words[self.kind]


@dataclass(frozen=True, slots=True)
class Finding:
    """Describe one problem, or one remark."""

    rule: str
    message: str
    path: str = ""
    """The node, from the root of the store."""
    key: str | None = None
    """The store key concerned, if any."""
    chunk: tuple[int, ...] | None = None
    """The coords of the chunk (or shard)."""
    loc: tuple[str | int, ...] = ()
    """Location in the document."""
    fix: str = ""
    """What the user can do."""
    action: Action | None = None
    """What `repair` can do; ``None``: nothing."""
    stated: Severity | None = None
    """The severity of third-party conventions, whose rules are not in the table."""

    @property
    def severity(self) -> Severity:
        """error, warning or info; defined by the rule."""
        return self.stated or RULES[self.rule][0]

    @property
    def repairable(self) -> bool:
        """Whether `repair` can correct it without giving up data."""
        return self.action is not None and self.action.kind != "quarantine"

    def to_json(self) -> JSONObject:
        """Return the finding as a JSON object."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "path": self.path,
            "key": self.key,
            "chunk": None if self.chunk is None else list(self.chunk),
            "loc": list(self.loc),
            "fix": self.fix,
            "repairable": self.repairable,
            "action": None if self.action is None else self.action.to_json(),
        }

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> Finding:
        """Parse the result of `to_json`."""
        action = obj.get("action")
        chunk = obj.get("chunk")
        return cls(
            obj["rule"],
            obj["message"],
            obj["path"],
            obj["key"],
            None if chunk is None else tuple(chunk),
            tuple(obj["loc"]),
            obj["fix"],
            None if action is None else Action(**action),
            None if obj["rule"] in RULES and RULES[obj["rule"]][0] == obj["severity"] else obj["severity"],
        )

    def __str__(self) -> str:
        place = self.key if self.key is not None else f"/{self.path}"
        loc = f" {'/'.join(map(str, self.loc))}" if self.loc else ""
        text = f"{self.severity:7} {self.rule:16} {place}{loc}: {self.message}"
        if self.repairable:
            text += f"\n{'':25}repair: {self.action}"
        return text + (f"\n{'':25}{self.fix}" if self.fix else "")


@dataclass(slots=True)
class Report:
    """Hold the outcome of a check."""

    store: str
    path: str
    data: Level | None
    findings: list[Finding] = field(default_factory=list)
    arrays: int = 0
    groups: int = 0
    chunks: int = 0
    """Number of stored chunks (shards) checked."""
    nbytes: int = 0
    """Sum of their stored sizes in bytes, where the size was checked."""

    @property
    def ok(self) -> bool:
        """Whether there are no errors and no warnings."""
        return not any(finding.severity != "info" for finding in self.findings)

    @property
    def repairable(self) -> list[Finding]:
        """The findings that `repair` can correct."""
        return [finding for finding in self.findings if finding.repairable]

    def of(self, *rules: str) -> list[Finding]:
        """Return the findings of some rules."""
        return [finding for finding in self.findings if finding.rule in rules]

    def counts(self) -> dict[str, int]:
        """Return the number of findings per severity."""
        return dict(Counter(finding.severity for finding in self.findings))

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings; printing sorts by severity."""
        self.findings += findings

    def to_json(self) -> JSONObject:
        """Return the report as a JSON object."""
        return {
            "store": self.store,
            "path": self.path,
            "data": self.data,
            "ok": self.ok,
            "arrays": self.arrays,
            "groups": self.groups,
            "chunks": self.chunks,
            "nbytes": self.nbytes,
            "counts": dict(self.counts()),
            "findings": [finding.to_json() for finding in self.findings],
        }

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> Report:
        """Parse the result of `to_json`."""
        found = [Finding.from_json(item) for item in obj["findings"]]
        return cls(
            obj["store"], obj["path"], obj["data"], found, obj["arrays"], obj["groups"], obj["chunks"], obj["nbytes"]
        )

    def __str__(self) -> str:
        counts = self.counts()
        totals = ", ".join(
            counted(counts.get(kind, 0), noun)
            for kind, noun in (("error", "error"), ("warning", "warning"), ("info", "note"))
        )
        what = ", ".join((counted(self.groups, "group"), counted(self.arrays, "array"), counted(self.chunks, "chunk")))
        lines = [f"{self.store}: {what} checked; {totals}"]
        ordered = sorted(self.findings, key=lambda finding: (_ORDER[finding.severity], finding.path))
        return "\n".join([*lines, *map(str, ordered)])
