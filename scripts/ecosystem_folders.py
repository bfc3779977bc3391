"""Folders from which the processes of `scripts/ecosystem.py` import tessarr and what helps its tests."""

from __future__ import annotations

from pathlib import Path


def package(root: Path, build: Path, mode: str) -> Path:
    """Return the folder from which tessarr is imported: with its entry points, but in the mode "patch".

    zarr-python's tests are made of the data types that are registered, by a loop over the registry that looks data types up, in
    the processes that they start, too: with the patch they see none of tessarr.
    """
    if mode != "patch":
        return root / "src"
    (folder := build / "package").mkdir(parents=True, exist_ok=True)
    if not (folder / "tessarr").is_symlink():
        (folder / "tessarr").symlink_to(root / "src" / "tessarr", target_is_directory=True)
    return folder


def for_children(build: Path) -> Path:
    """Make a folder whose `sitecustomize` gives processes of tests the placeholders; else they cannot load the tests."""
    (place := build / "children").mkdir(exist_ok=True)
    text = "import os\nif os.environ.get('TESSARR_AS_ZARR'):\n    import ecosystem_placeholders\n"
    (place / "sitecustomize.py").write_text(text, encoding="utf-8")
    return place
