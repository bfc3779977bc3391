"""``tessarr view``: look at a hierarchy in a browser."""

from __future__ import annotations

import argparse
import os
import threading
import webbrowser
from urllib.parse import quote

from tessarr.cli.places import split_place, storage_options
from tessarr.cli.printing import OK, add_place, add_verb, print_json
from tessarr.cli.serving import add_server_options, application_of, name_of, run_server


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
tessarr view public/data.zarr --export public/look
tessarr view s3://bucket/data.zarr --export look --url https://bucket.s3.amazonaws.com/data.zarr
""",
    )
    add_place(verb)
    add_server_options(verb)
    verb.add_argument("--no-browser", action="store_true", help="print the URL only")
    verb.add_argument(
        "--export", metavar="DIR",
        help="write the page and descriptions of all nodes into a directory, to be published beside the data, and end",
    )  # fmt: skip
    verb.add_argument(
        "--url", help="with --export: where browsers find the data (default: by the path from DIR to PLACE)"
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until interrupted, and open it in a browser unless the user is on another machine."""
    from tessarr.viewer import page_files, page_path

    if arguments.export is not None:
        return _export(arguments)
    application = application_of(arguments, page=page_files())
    opens = not arguments.no_browser and not arguments.json and not os.environ.get("SSH_CONNECTION")
    return run_server(application, arguments, page_path(application), _open if opens else None)


def _export(arguments: argparse.Namespace) -> int:
    """Write a page that needs no server of tessarr."""
    from tessarr.viewer.export import export

    place, inner = split_place(arguments.place)
    path = "/".join(part.strip("/") for part in (inner, arguments.path) if part.strip("/"))
    url = arguments.url
    if url is None:
        if "://" in place or not os.path.isdir(place):
            raise ValueError("say with --url where browsers find the data: this place is not a directory")
        url = quote(os.path.relpath(os.path.join(place, path), arguments.export).replace(os.sep, "/"))
    options = storage_options(arguments.storage)
    count = export(place, arguments.export, path=path, url=url, name=name_of(place, path), storage_options=options)
    if arguments.json:
        print_json({"directory": arguments.export, "url": url, "nodes": count})
    else:
        print(f"{arguments.export}: a page of {count} nodes, which reads {url}")
    return OK


def _open(url: str) -> None:
    """Open a browser from a thread: one in a terminal returns when it is closed, and needs the server meanwhile."""
    threading.Thread(target=webbrowser.open, args=(url,), name="tessarr-browser", daemon=True).start()
