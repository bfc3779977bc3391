"""Write the results of ``check``, ``diff`` and ``info`` as pages that need nothing else: no script, no request, text escaped.

A page has the colours of the page of ``tessarr view``, light or dark, and the descriptions and drawings of notebooks
(`tessarr.core.notebook`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from math import prod

import numpy as np

import tessarr
from tessarr.cli.printing import human
from tessarr.common.counted import counted
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.notebook.describe import array_html, drawn_axes, group_html
from tessarr.core.notebook.grid_svg import Stored, draw
from tessarr.errors import TessarrError
from tessarr.stores.base import Store
from tessarr.tools.check import RULES, Report
from tessarr.tools.diff import Diff
from tessarr.types import Coords

MAX_ROWS = 5_000
"""Rows of one table."""
MAX_DRAWN = 1 << 16
"""Values (chunks or shards) of a grid that is drawn."""
_MAX_DRAWINGS = 20
_MAX_BARS = 50
_ORDER = ("error", "warning", "info")
_CSS = (
    "body{margin:2rem auto;max-width:70rem;padding:0 1rem;font:15px/1.5 system-ui,sans-serif;color:var(--text);"
    "background:var(--ground)}h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}"
    "table.list{border-collapse:collapse;width:100%}table.list th,table.list td{text-align:left;vertical-align:top;"
    "padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}"
    ".error{color:var(--error);font-weight:600}.quiet{color:var(--quiet)}svg.bar{color:var(--accent)}"
    ".drawings{display:flex;flex-wrap:wrap;gap:1.5rem}figure{margin:0;max-width:16rem}"
)
Cell = tuple[str, str]
"""A text and a class of CSS."""


def check_page(report: Report, store: Store) -> str:
    """Make the page of a check: findings by rule, where damaged chunks are, and the list of all."""
    counts = report.counts()
    nouns = (("error", "error"), ("warning", "warning"), ("info", "note"))
    said = ", ".join(counted(counts.get(kind, 0), noun) for kind, noun in nouns)
    what = (counted(report.groups, "group"), counted(report.arrays, "array"), counted(report.chunks, "chunk"))
    parts = [f"<p>{', '.join(what)} checked; {said}.</p>"]
    if not report.findings:
        return _page(f"Check of {report.store}", [*parts, "<p>No problems found.</p>"])
    findings = sorted(report.findings, key=lambda one: (_ORDER.index(one.severity), one.path))
    rules = Counter((one.severity, one.rule) for one in findings)
    meaning = {rule: RULES[rule][1] if rule in RULES else "" for _, rule in rules}
    parts += [
        "<h2>Findings by rule</h2>",
        _bars((f"{rule}: {meaning[rule]}", n, f"{n:,}") for (_, rule), n in rules.items()),
    ]
    parts += _damage(report, store)
    rows = [
        [
            (one.severity, one.severity), (one.rule, ""), (one.key if one.key is not None else f"/{one.path}", ""),
            (one.message, ""), (str(one.action) if one.repairable else one.fix, "quiet"),
        ]
        for one in findings
    ]  # fmt: skip
    parts += ["<h2>All findings</h2>", _list(("Severity", "Rule", "Where", "What", "What to do"), rows)]
    return _page(f"Check of {report.store}", parts)


def _damage(report: Report, store: Store) -> list[str]:
    """Draw where in the grids of arrays the damaged chunks are."""
    found: dict[str, list[Coords]] = {}
    for one in report.findings:
        if one.chunk is not None and one.severity != "info":
            found.setdefault(one.path, []).append(one.chunk)
    figures = []
    for path, coords in found.items():
        try:
            array = tessarr.open_array(store, path=path, mode="r")
        except (TessarrError, ValueError):
            continue  # a finding of its own
        figure = _grid(
            array,
            coords,
            f"/{path}: {len(set(coords)):,} of {prod(axis.nchunks for axis in array._bound.axes):,} damaged",
        )
        figures += [figure] if figure else []
    if not figures:
        return []
    more = len(figures) - _MAX_DRAWINGS
    note = f'<p class="quiet">{more:,} more arrays are not drawn.</p>' if more > 0 else ""
    return [f'<h2>Damaged chunks</h2><div class="drawings">{"".join(figures[:_MAX_DRAWINGS])}</div>{note}']


def diff_page(result: Diff) -> str:
    """Make the page of a comparison: what differs in structure, and how much of which arrays."""
    title = f"{result.a} → {result.b}"
    if result.equal:
        how = "" if result.compared_values else " in structure; values were not compared"
        return _page(title, [f"<p>Both are equal{how}.</p>"])
    parts = []
    if result.values:
        shares = [
            (f"/{one.path}", one.count / max(1, one.size), f"{one.count:,} of {one.size:,} elements: {one.message}")
            for one in result.values
        ]
        parts += ["<h2>Values that differ</h2>", _bars(shares, whole=1)]
    elif not result.compared_values:
        parts.append('<p class="quiet">Values were not compared (--data).</p>')
    if result.structure:
        kinds = Counter(one.kind for one in result.structure)
        parts.append(f"<h2>Structure: {', '.join(f'{n:,} {kind}' for kind, n in kinds.items())}</h2>")
        rows = [
            [(one.kind, "error" if one.kind == "removed" else ""), *((text, "") for text in str(one).split(": ", 1))]
            for one in result.structure
        ]
        parts.append(_list(("Kind", "Where", "What"), rows))
    return _page(title, parts)


def info_page(node: Array | Group, rows: Iterable[tuple[str, str]], stored: Sequence[Coords] | None) -> str:
    """Make the page of a node: its description as in notebooks, with the chunks that are `stored`, and its `rows`."""
    if isinstance(node, Array):
        parts = [array_html(node, None if stored is None else _found(node, stored))]
    else:
        parts = [group_html(node)]
        if stored is not None and node._store.supports_listing:
            arrays = [member for _, member in node.members(max_depth=None) if isinstance(member, Array)][:MAX_ROWS]
            sizes = sorted(((array.nbytes_stored(), array.name) for array in arrays), reverse=True)
            parts += [
                "<h2>Stored bytes</h2>",
                _bars((name, nbytes, human(nbytes)) for nbytes, name in sizes[:_MAX_BARS]),
            ]
    parts += ["<h2>Facts</h2>", _list(("What", "Value"), [[(name, ""), (text, "")] for name, text in rows])]
    return _page(f"{node.name} of {node._store.url}", parts)


def _found(array: Array, coords: Iterable[Coords]) -> Stored | None:
    """Return which values of a grid are among `coords`; ``None`` for a grid that is too large to draw."""
    grid = [axis.nchunks for axis in array._bound.axes]
    if not 0 < prod(grid) <= MAX_DRAWN:
        return None
    found = np.zeros(grid, bool)
    for one in coords:
        if len(one) == len(grid) and all(index < count for index, count in zip(one, grid, strict=True)):
            found[one] = True
    return found


def _grid(array: Array, coords: Sequence[Coords], caption: str) -> str:
    found = _found(array, coords)
    if found is None:
        return ""
    drawing = draw(drawn_axes(array), found, caption=caption)
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def _bars(rows: Iterable[tuple[str, float, str]], whole: float | None = None) -> str:
    """Draw numbers as bars in a table, in the ratio of the largest, or of `whole`."""
    listed = list(rows)
    most = whole or max((value for _, value, _ in listed), default=0) or 1
    lines = (
        f'<tr><th scope="row">{escape(name)}</th><td><svg class="bar" role="img" aria-label="{escape(text, quote=True)}" '
        f'width="204" height="14"><rect x="1" y="1" width="{max(1.0, 200 * value / most):.1f}" height="12" '
        f'fill="currentColor"/></svg></td><td>{escape(text)}</td></tr>'
        for name, value, text in listed
    )
    return f'<table class="list"><tbody>{"".join(lines)}</tbody></table>'


def _list(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = (
        "<tr>" + "".join(f'<td class="{kind}">{escape(text)}</td>' for text, kind in row) + "</tr>"
        for row in rows[:MAX_ROWS]
    )
    more = len(rows) - MAX_ROWS
    note = f'<p class="quiet">… {more:,} more; --json has all</p>' if more > 0 else ""
    return f'<table class="list"><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>{note}'


def _page(title: str, parts: Iterable[str]) -> str:
    text = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_palette()}{_CSS}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{''.join(parts)}</main></body></html>\n"
    )
    return text.encode("utf-8", "replace").decode()  # names of files may hold what UTF-8 has no bytes for


def _palette() -> str:
    """Return the colours of the page of ``tessarr view``: the first two rules of its style, light and dark."""
    style = files("tessarr.viewer").joinpath("viewer.css").read_text(encoding="utf-8")
    light, dark = re.findall(r"\{(.*?)\}", style)[:2]
    return f":root{{{light};color-scheme:light dark}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
