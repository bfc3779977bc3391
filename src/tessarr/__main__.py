"""Run the command ``tessarr`` as ``python -m tessarr``."""

from __future__ import annotations

import sys

from tessarr.cli import main

if __name__ == "__main__":
    sys.exit(main())
