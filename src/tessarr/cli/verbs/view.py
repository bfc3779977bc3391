"""``tessarr view``: look at a hierarchy in a browser."""

from __future__ import annotations

import argparse
import os
import threading
import webbrowser

from tessarr.cli.printing import add_place, add_verb
from tessarr.cli.serving import add_server_options, application_of, run_server


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "view",
        summary="look at a hierarchy in a browser, without a network",
        text="Open a page in a browser that shows the nodes of a hierarchy, their metadata, and their data as heat maps, "
        "lines and tables. The page comes from this installation, the data from this machine, and nothing from a network. "
        "The first line of the output is the URL of the page. Only this machine can connect, and only who knows the URL.",
        examples="""
tessarr view data.zarr
tessarr view data.zarr air
tessarr view data.zarr --no-browser
tessarr view s3://bucket/data.zarr --storage skip_signature=true
""",
    )
    add_place(verb)
    add_server_options(verb)
    verb.add_argument("--no-browser", action="store_true", help="print the URL only")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until interrupted, and open it in a browser unless the user is on another machine."""
    from tessarr.viewer import page_files, page_path

    application = application_of(arguments, page=page_files())
    opens = not arguments.no_browser and not arguments.json and not os.environ.get("SSH_CONNECTION")
    return run_server(application, arguments, page_path(application), _open if opens else None)


def _open(url: str) -> None:
    """Open a browser from a thread: one in a terminal returns when it is closed, and needs the server meanwhile."""
    threading.Thread(target=webbrowser.open, args=(url,), name="tessarr-browser", daemon=True).start()
