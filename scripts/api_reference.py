"""Writes docs/api: one Markdown page per public module, from its signatures and docstrings.

    python scripts/api_reference.py [DIR]

What is public is what `tessarr` and its doors name. The pages are made, not kept: `make docs` makes them anew.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tessarr.errors import MissingDependencyError

ROOT = Path(__file__).resolve().parent.parent
MODULES = {
    "tessarr": "The package",
    "tessarr.storage": "Stores",
    "tessarr.codecs": "Codecs",
    "tessarr.dtype": "Data types",
    "tessarr.errors": "Errors",
    "tessarr.settings": "Settings",
    "tessarr.registry": "The registry",
    "tessarr.types": "Shared types",
    "tessarr.stores.base": "The contract of stores",
    "tessarr.codecs.base": "The contract of codecs",
    "tessarr.dtypes.base": "The contract of data types",
    "tessarr.grids.base": "The contract of grids",
    "tessarr.keys.base": "The contract of chunk key encodings",
    "tessarr.engine.base": "The contract of engines",
    "tessarr.engine.transformers": "The contract of storage transformers",
}


def public(module: Any) -> Iterator[tuple[str, Any]]:
    """Names and values that the module offers: those it lists, or those that are defined in it."""
    listed = getattr(module, "__all__", None)
    names = listed if listed is not None else [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        try:
            value = getattr(module, name)
        except MissingDependencyError as error:
            print(f"note: {module.__name__}.{name} is left out: {error}", file=sys.stderr)
            continue
        home = getattr(value, "__module__", None)
        if (inspect.isclass(value) or inspect.isroutine(value)) and (listed is not None or home == module.__name__):
            yield name, value


def signature(value: Any) -> str:
    """Write the arguments of `value`; nothing where Python has no signature."""
    try:
        text = str(inspect.signature(value))
    except (ValueError, TypeError):
        return ""
    # Annotations are text, which Python shows in quotes; objects are shown by where they happened to be in memory.
    return re.sub(r"<object object at 0x[0-9a-f]+>", "...", re.sub(r"(: |-> )(['\"])(.*?)\2", r"\1\3", text))


def described(name: str, value: Any, level: str) -> Iterator[str]:
    """Write a heading, the signature, and the docstring, if there is one."""
    text = inspect.getdoc(value) or ""
    yield f"{level} `{name}`\n"
    if callable(value):
        yield f"```python\n{name.rpartition('.')[2]}{signature(value)}\n```\n"
    if text:
        yield text + "\n"


def members(name: str, value: type[Any]) -> Iterator[str]:
    """Describe the public methods and properties that a class itself defines."""
    for member, defined in vars(value).items():
        if member.startswith("_"):
            continue
        if inspect.isroutine(defined) or isinstance(defined, property | classmethod | staticmethod):
            yield from described(f"{name}.{member}", getattr(value, member), "###")


def page(module_name: str, title: str) -> str:
    """One page."""
    module = importlib.import_module(module_name)
    parts = [f"# {title}: `{module_name}`\n", (inspect.getdoc(module) or "") + "\n"]
    for name, value in sorted(public(module), key=lambda item: (not inspect.isclass(item[1]), item[0])):
        parts += described(name, value, "##")
        if inspect.isclass(value):
            parts += members(name, value)
    return "\n".join(parts)


def main() -> int:
    """Write every page and an index of them."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "api"
    target.mkdir(parents=True, exist_ok=True)
    index = ["# Reference\n"]
    for name, title in MODULES.items():
        (target / f"{name}.md").write_text(page(name, title), encoding="utf-8")
        index.append(f"- [{title}]({name}.md): `{name}`")
    (target / "index.md").write_text("\n".join(index) + "\n", encoding="utf-8")
    print(f"{len(MODULES)} pages in {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
