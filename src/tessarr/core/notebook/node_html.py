"""Make the HTML of a node from facts about it. Pure: text in, text out, and everything that is not ours is escaped.

There is no script, no identifier and nothing from elsewhere. Without CSS it is a table, a list and a drawing in the colour of
the text. With CSS it has a background of its own, so that it can be read on pages that know no dark mode.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice

MAX_ATTRIBUTES = 12
_TEXT_CHARS = 160

_LIGHT = "color:#1b1f24;background:#fff;border-color:#8c959f"
_DARK = "color:#e6edf3;background:#161b22;border-color:#6e7681"
CSS = (
    ".tsr-node{display:inline-block;max-width:100%;box-sizing:border-box;overflow-x:auto;padding:8px 12px;"
    f"border:1px solid;border-radius:6px;font:13px/1.4 sans-serif;color-scheme:light;{_LIGHT}}}"
    ".tsr-node .tsr-row{display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start}"
    ".tsr-node table{border-collapse:collapse;margin:0;color:inherit;background:none;font-size:inherit}"
    ".tsr-node tr,.tsr-node th,.tsr-node td{background:none;color:inherit;text-align:left;vertical-align:top;"
    "padding:1px 12px 1px 0;border:0;max-width:36em;white-space:normal;overflow-wrap:anywhere}"
    ".tsr-node th{font-weight:600;white-space:nowrap}"
    ".tsr-node figure{margin:0;max-width:240px}.tsr-node ul{margin:0;padding-left:1.4em}"
    ".tsr-node summary{cursor:pointer}"
    f"@media (prefers-color-scheme:dark){{.tsr-node{{{_DARK};color-scheme:dark}}}}"
    f'[data-jp-theme-light="true"] .tsr-node,[data-theme="light"] .tsr-node,.vscode-light .tsr-node'
    f"{{{_LIGHT};color-scheme:light}}"
    f'[data-jp-theme-light="false"] .tsr-node,[data-theme="dark"] .tsr-node,.vscode-dark .tsr-node'
    f"{{{_DARK};color-scheme:dark}}"
)


@dataclass(frozen=True)
class Branch:
    """A member in a tree: its name, what is said about it, and the members below it."""

    name: str
    text: str = ""
    below: Sequence[Branch] = ()
    note: str = ""
    """What is said below the last of these."""
    link: str = ""
    """Where its name leads; empty: nowhere."""


def cut(text: str, most: int = _TEXT_CHARS) -> str:
    """Cut a text to at most `most` characters.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def node_html(
    title: str,
    rows: Iterable[tuple[str, str]],
    attributes: Mapping[str, object],
    *,
    figure: str = "",
    caption: str = "",
    tree: Branch | None = None,
) -> str:
    """Make the HTML of a node; `figure` is SVG, all else is text."""
    drawn = f"<figure>{figure}<figcaption>{escape(caption)}</figcaption></figure>" if figure else ""
    made = (
        f'<div class="tsr-node"><style>{CSS}</style><div><strong>{escape(cut(title))}</strong></div>'
        f'<div class="tsr-row"><div>{_table(rows)}</div>{drawn}</div>'
        f"{'' if tree is None else _tree(tree)}{_attributes(attributes)}</div>"
    )
    return made.encode("utf-8", "replace").decode()  # names of files may hold what UTF-8 has no bytes for


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f'<tr><th scope="row">{escape(cut(key, 60))}</th><td>{escape(cut(text))}</td></tr>' for key, text in rows)
    return f"<table><tbody>{''.join(cells)}</tbody></table>"


def _attributes(attributes: Mapping[str, object]) -> str:
    """Show the first attributes; the time depends on what is shown, not on what there is."""
    if not attributes:
        return ""
    short = reprlib.Repr()
    short.maxstring = short.maxother = _TEXT_CHARS
    short.maxlevel = 3
    rows = [(name, short.repr(attributes[name])) for name in islice(attributes, MAX_ATTRIBUTES)]
    more = len(attributes) - len(rows)
    note = f"<div>… {more:,} more</div>" if more else ""
    return f"<details open><summary>Attributes ({len(attributes):,})</summary>{_table(rows)}{note}</details>"


def _tree(branch: Branch) -> str:
    if not branch.below and not branch.note:
        return ""
    return f"<div>Members</div>{_list(branch)}"


def _list(branch: Branch) -> str:
    items = "".join(f"<li>{_item(below)}</li>" for below in branch.below)
    note = f"<li>{escape(branch.note)}</li>" if branch.note else ""
    return f"<ul>{items}{note}</ul>"


def _item(branch: Branch) -> str:
    name = f"<strong>{escape(cut(branch.name, 60))}</strong>"
    if branch.link:
        name = f'<a href="{escape(branch.link)}">{name}</a>'
    said = f"{name} {escape(cut(branch.text, 100))}"
    if not branch.below and not branch.note:
        return said
    return f"<details open><summary>{said}</summary>{_list(branch)}</details>"
