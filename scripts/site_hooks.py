"""Add to the documentation site what lies outside of docs/: the pages at the root, measured tables, and the reference.

MkDocs calls these functions while it builds (`hooks` in mkdocs.yml). Pages at the root keep their relative links, so that
they work in a checkout and on the site: the site holds them below ``project/``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "project"
PAGES = ("README", "ARCHITECTURE", "GLOSSARY", "CONTRIBUTING", "CORRECTNESS", "CHANGELOG")
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
"""The public modules, each with the title of its page."""

_LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?\)")


def linked_from(source: Path) -> Iterator[Path]:
    """Yield the Markdown files outside of docs/ that a page links to."""
    for _, target, _ in _LINK.findall(source.read_text(encoding="utf-8")):
        path = (source.parent / target).resolve()
        if path.suffix in {".md", ""} and path.is_file() and not path.is_relative_to(ROOT / "docs"):
            yield path


def outside(docs: Path) -> set[Path]:
    """Find the pages outside of docs/ that the site shows: those at the root and what is linked from any page."""
    found = {ROOT / f"{name}.md" for name in PAGES}
    waiting = [*found, *docs.glob("*.md")]
    while waiting:
        new = set(linked_from(waiting.pop())) - found
        found |= new
        waiting += new
    return found


def place(path: Path) -> str:
    """Return the address of a file of the checkout on the site, relative to the site's pages."""
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    name = path.relative_to(ROOT).as_posix()
    return f"{FOLDER}/{name if name.endswith('.md') else name + '.md'}"


def relinked(text: str, source: Path) -> str:
    """Rewrite the relative links of a page for its place on the site."""

    def link(match: re.Match[str]) -> str:
        before, target, anchor = match.groups()
        path = (source.parent / target).resolve()
        if "://" in target or not path.is_file() or not path.is_relative_to(ROOT):
            return match[0]
        return f"{before}{posixpath.relpath(place(path), posixpath.dirname(place(source)) or '.')}{anchor or ''})"

    return _LINK.sub(link, text)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the navigation of the reference."""
    for entry in config.nav or []:
        if isinstance(entry, dict) and "Reference" in entry:
            entry["Reference"] = [{f"{title}": f"reference/{name}.md"} for name, title in MODULES.items()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside of docs/ and one page for each public module."""
    for path in sorted(outside(Path(config.docs_dir))):
        text = path.read_text(encoding="utf-8")
        files.append(File.generated(config, place(path), content=relinked(text, path)))
    for name, title in MODULES.items():
        text = f"# {title}: `{name}`\n\n::: {name}\n"
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Rewrite the links of a page in docs/ that leave docs/."""
    source = Path(config.docs_dir) / page.file.src_uri
    return relinked(markdown, source) if source.is_file() else markdown
