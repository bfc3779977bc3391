"""Stand in for the build backend of a project whose released archive is only to be unpacked, not built.

`pip download` asks the backend for the metadata of an archive. Some backends compile a Rust crate or a web page for that, and
fail without the tools for it. This module gives the metadata that the archive holds. `scripts/ecosystem.py` puts it on the path
of pip's child process under the name of the project's backend.
"""

from __future__ import annotations

from email.parser import HeaderParser
from pathlib import Path


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:  # noqa: ARG001 - the name is pip's
    """Require nothing."""
    return []


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:  # noqa: ARG001
    """Copy the archive's ``PKG-INFO``; return the name of the directory that it is in."""
    text = Path("PKG-INFO").read_text(encoding="utf-8")
    headers = HeaderParser().parsestr(text)
    name = f"{headers['Name'].replace('-', '_')}-{headers['Version']}.dist-info"
    place = Path(metadata_directory, name)
    place.mkdir()
    (place / "METADATA").write_text(text, encoding="utf-8")
    return name
