"""Do the work of one peer in this process, and print its figures as JSON: python -m plans.child ROW PEER SOURCE TARGET.

Everything else that is printed goes to stderr. Exit status: 0; 3 where the peer is not installed.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings

from plans.row import NotInstalledError
from plans.rows import ROWS

NOT_INSTALLED = 3


def main(row: str, peer: str, source: str, target: str) -> int:
    """Do the work."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    try:
        more = ROWS[row].jobs[peer](source, target)
    except (ImportError, NotInstalledError) as error:
        print(error, file=sys.stderr)
        return NOT_INSTALLED
    print(json.dumps({"seconds": time.perf_counter() - began, **(more or {})}), file=channel, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
