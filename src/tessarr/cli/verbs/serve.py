"""``tessarr serve``: serve a hierarchy over HTTP, read-only."""

from __future__ import annotations

import argparse

from tessarr.cli.printing import add_place, add_verb
from tessarr.cli.serving import add_server_options, application_of, run_server


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "serve",
        summary="serve a hierarchy over HTTP, read-only",
        text="Serve a hierarchy over HTTP to every client that reads Zarr: browsers, zarr-python, xarray, GDAL, neuroglancer. "
        "The first line of the output is the URL of its root. Only this machine can connect, and only who knows the URL.",
        examples="""
tessarr serve data.zarr
tessarr serve data.zip --port 8080
tessarr serve s3://bucket/data.zarr --storage skip_signature=true
tessarr serve data.zarr --cors https://hms-dbmi.github.io
tessarr serve data.zarr --host 0.0.0.0 --public --allowed-host data.example.org
""",
    )
    add_place(verb)
    add_server_options(verb)
    verb.add_argument(
        "--cors", action="append", default=[], metavar="ORIGIN",
        help="let pages of this origin read the data; * for all (may be repeated)",
    )  # fmt: skip
    verb.add_argument("--as-stored", action="store_true", help="do not make up consolidated metadata")
    verb.add_argument(
        "--no-dynamic", action="store_true", help="serve what is stored only: no slices, pictures, statistics"
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    application = application_of(
        arguments, cors=arguments.cors, as_stored=arguments.as_stored, dynamic=not arguments.no_dynamic
    )
    return run_server(application, arguments, f"{application.served.base}/")
