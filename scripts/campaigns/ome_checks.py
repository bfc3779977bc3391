"""Compare tessarr's checks of OME-Zarr metadata with those of ome-zarr-models and yaozarrs.

    .venv/bin/python -m pip install ome-zarr-models yaozarrs
    .venv/bin/python scripts/campaigns/ome_checks.py --damages 400

Damages valid metadata of OME-Zarr 0.4 and 0.5 at random (as tests/conventions/test_ome_schemas.py does), keeps the documents
that the published JSON schemas refuse, and counts how many each package refuses too. Labels without multiscales are left out
for the packages that have no model of them. ome-zarr-models needs zarr-python: the script runs where both are installed.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "src"))

CASES = "tests.conventions.test_ome_schemas"
CLASSES = {
    ("ome_zarr_models", "0.4"): {
        "image": "image:ImageAttrs", "plate": "hcs:HCSAttrs", "well": "well:WellAttrs",
        "bf2raw": "bioformats2raw:BioFormats2RawAttrs",
    },
    ("ome_zarr_models", "0.5"): {"image": "image:ImageAttrs", "plate": "hcs:HCSAttrs", "well": "well:WellAttrs"},
    ("yaozarrs", "0.4"): {"image": ":Image", "plate": ":Plate", "well": ":Well", "bf2raw": ":Bf2Raw"},
    ("yaozarrs", "0.5"): {"image": ":Image", "plate": ":Plate", "well": ":Well", "bf2raw": ":Bf2Raw", "ome": ":Series"},
}  # fmt: skip
"""Package and version → kind of metadata → module and class."""


def refused_documents(damages: int) -> Iterator[tuple[str, str, Any]]:
    """Yield version, kind and attributes of damaged metadata that the published schemas refuse."""
    cases = importlib.import_module(CASES)
    for version, kind, attributes in cases.SOUND:
        if version in ("0.4", "0.5"):
            schema, chance = cases.validator(version, kind), random.Random(7)
            for _ in range(damages):
                made = cases.damaged(attributes, chance)
                if not schema.is_valid(made) and cases.stands(version, kind, made):
                    yield version, kind, made


def refuses(package: str, version: str, kind: str, attributes: Any) -> bool | None:
    """Return whether `package` refuses the metadata; ``None`` where it has no model of this kind."""
    found = CLASSES[package, version].get(kind)
    if found is None:
        return None
    module, _, name = found.partition(":")
    path = f"{package}.v{version.replace('.', '')}" + (f".{module}" if module else "")
    validate: Callable[[Any], object] = getattr(importlib.import_module(path), name).model_validate
    try:
        validate(attributes if version == "0.4" else attributes["ome"])
    except Exception:  # pydantic's ValidationError, and what a model's own code raises on unexpected values
        return True
    return False


def main() -> int:
    """Print per package how many of the damaged documents it refuses."""
    told = importlib.import_module(CASES).told
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--damages", type=int, default=400, help="damages of each document (default 400)")
    documents = list(refused_documents(parser.parse_args().damages))
    print(f"tessarr: {sum(bool(told(version, made)) for version, _, made in documents)} of {len(documents)}")
    for package in ("ome_zarr_models", "yaozarrs"):
        results = [refuses(package, *document) for document in documents]
        judged = [result for result in results if result is not None]
        print(f"{package}: {sum(judged)} of {len(judged)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
