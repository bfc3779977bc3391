"""Write the public API as text, one name and signature per line (`make api-snapshot` accepts the present API).

python scripts/api_snapshot.py            # write tests/architecture/public_api.txt
python scripts/api_snapshot.py --print    # only show it
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SNAPSHOT = Path(__file__).resolve().parent.parent / "tests" / "architecture" / "public_api.txt"


def signature(thing: Any) -> str:
    """Return the signature of `thing` with its annotations, equal on every Python."""
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(…)"
    return re.sub(r" at 0x[0-9a-f]+", "", text).replace("'", "")


def members(owner: type) -> Iterator[str]:
    """List the public methods, properties and class attributes that tessarr defines, one line each."""
    seen: set[str] = set()
    for base in owner.__mro__:
        if not base.__module__.startswith("tessarr"):
            continue
        for name, value in vars(base).items():
            if (name.startswith("_") and name not in {"__getitem__", "__setitem__", "__init__"}) or name in seen:
                continue
            seen.add(name)
            inner = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            kind = type(value).__name__ if isinstance(value, classmethod | staticmethod) else ""
            if inspect.isfunction(inner):
                prefix = f"{kind} " if kind else "async " if inspect.iscoroutinefunction(inner) else ""
                yield f"{prefix}{name}{signature(inner)}"
            elif not inspect.ismodule(inner) and not inspect.isclass(inner):
                yield name


def snapshot() -> str:
    """List every name of ``tessarr.__all__`` with its members."""
    import tessarr

    lines = []
    for name in sorted(tessarr.__all__):
        thing = getattr(tessarr, name)
        if inspect.isclass(thing):
            bases = ", ".join(base.__name__ for base in thing.__bases__ if base is not object)
            lines.append(f"class {name}({bases})")
            if not issubclass(thing, BaseException):
                lines += sorted(f"    {line}" for line in members(thing))
        elif inspect.ismodule(thing):
            lines.append(f"module {name}: {', '.join(sorted(getattr(thing, '__all__', [])))}")
        elif callable(thing):
            lines.append(f"{'async ' if inspect.iscoroutinefunction(thing) else ''}def {name}{signature(thing)}")
        else:
            lines.append(f"{name}: {type(thing).__name__}")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="do not write")
    text = snapshot()
    if parser.parse_args().print:
        print(text, end="")
    else:
        SNAPSHOT.write_text(text, encoding="utf-8")
        print(f"{SNAPSHOT.name}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
