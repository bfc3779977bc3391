"""``tessarr convert``: convert other formats, and Zarr of any version, to Zarr of any version."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from glob import has_magic
from multiprocessing import get_context
from typing import Any, Literal, TypedDict

from tessarr.cli.places import open_node, split_place, storage_options
from tessarr.cli.printing import OK, add_source_storage, add_verb, human, lengths, note, print_json
from tessarr.cli.progress import bar
from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.common.counted import counted
from tessarr.stores.url import StoreLike
from tessarr.tools.convert import Report, convert, save_file_references
from tessarr.tools.copy_tree import ChunksChoice
from tessarr.tools.sources.remote_file import is_file_url

_FORMATS = "npy, npz, hdf5, netcdf, tiff, nifti, fits, grib, zarr, or that of another package"
_FOR_PROCESSES = 40
"""Files from which on scanning them in processes is faster than starting these."""


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "convert",
        summary="convert files (NetCDF, HDF5, TIFF, GRIB and others) or Zarr to Zarr",
        text="Convert .npy, .npz, HDF5, NetCDF, TIFF, NIfTI (with the extra 'tessarr[convert]'), FITS and GRIB (extras\n"
        "'fits' and 'grib'), one file or many, or Zarr of any version, to Zarr of any version. Several files are joined\n"
        "along a dimension; where they disagree, nothing is written. Attributes, dimension names and groups are kept;\n"
        "packed data stays packed. The result is read back and compared bit by bit, and moved to DEST only when it is\n"
        "complete.",
        examples="""
tessarr convert air.nc air.zarr
tessarr convert air.nc air.zarr --chunks time=100,lat=50 --shards time=1000 --compressor zstd:5
tessarr convert scan.tif scan.zip --chunks 512,512 --compressor blosc:lz4:5:bitshuffle
tessarr convert old.zarr new.zarr --format 3 --shards auto --consolidate
tessarr convert run.h5 run.zarr --include 'results/*' --exclude '*/debug' --dry-run
tessarr convert big.zarr s3://bucket/big.zarr --jobs 8
tessarr convert 'era5/*.nc' era5.zarr --along time --chunks time=100 --jobs 4
tessarr convert 'era5/*.nc' references.json --references
tessarr convert versioned.zarr plain.zarr --plain
""",
    )
    add_choices(verb)
    add_joining(verb)
    verb.add_argument("--dry-run", action="store_true", help="print what would be written")
    verb.add_argument(
        "--references", action="store_true",
        help="leave the chunks of SOURCE where they are, and write references to them: a Kerchunk file, where DEST "
        "ends in .json (with --format 2 as kerchunk writes it), Kerchunk's Parquet form, where it "
        "ends in .parq or .parquet, or arrays with manifests",
    )  # fmt: skip
    verb.add_argument(
        "--jobs", type=int, default=1, metavar="N",
        help="pieces processed concurrently, and processes that scan many files (default: 1)",
    )  # fmt: skip
    verb.set_defaults(run=run)


def add_choices(verb: argparse.ArgumentParser) -> None:
    """Add the places, and the options for what is written."""
    what = "a file, a Zarr directory, a zip file or a URL; or several files, or a pattern in quotes, that are joined"
    verb.add_argument("source", metavar="SOURCE", nargs="+", help=f"{what} along a dimension")
    verb.add_argument("dest", metavar="DEST", help="the destination: a directory, a name ending in .zip, or a URL")
    verb.add_argument("--path", default="", metavar="PATH", help="the node in DEST to write to (default: its root)")
    verb.add_argument(
        "--from", dest="kind", metavar="FORMAT", help=f"the format of SOURCE, if detection fails: {_FORMATS}"
    )
    verb.add_argument("--format", choices=("1", "2", "3", "keep"), help="the Zarr version to write (default: 3)")
    add_layout(verb)
    verb.add_argument(
        "--include", action="append", default=[], metavar="PATTERN", help="only these nodes (may be repeated)"
    )
    verb.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="not these nodes (may be repeated)"
    )
    verb.add_argument(
        "--rename", action="append", default=[], metavar="OLD=NEW", help="another name for a node (may be repeated)"
    )
    verb.add_argument(
        "--overwrite", action="store_true", help="replace existing data at DEST, once the new data is complete"
    )
    verb.add_argument(
        "--no-verify", dest="verify", action="store_false", help="do not read the result back to compare it"
    )
    verb.add_argument("--verify", dest="verify", action="store_true", default=True, help=argparse.SUPPRESS)
    verb.add_argument("--consolidate", action="store_true", help="write consolidated metadata too")
    verb.add_argument(
        "--plain", action="store_true",
        help="arrays that every implementation of Zarr reads: without storage transformers, which are never kept, and "
        "with default chunk keys",
    )  # fmt: skip
    verb.add_argument(
        "--storage",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of a remote DEST (may be repeated)",
    )
    add_source_storage(verb)


def add_layout(verb: argparse.ArgumentParser) -> None:
    """Add the options for how arrays are stored."""
    layout = 'lengths ("100,50"), by name ("time=100,lat=-1"), "auto", "keep" or a size ("8MB"); -1 is a whole axis'
    verb.add_argument("--chunks", default="keep", metavar="LAYOUT", help=layout)
    verb.add_argument("--shards", default="keep", metavar="LAYOUT", help='as for --chunks, or "none"; v3 only')
    verb.add_argument(
        "--compressor",
        "--codec",
        dest="compressors",
        action="append",
        default=[],
        metavar="CODEC",
        help='"zstd:5", "gzip:6", "blosc:lz4:5:shuffle", "none", or the JSON of a codec (may be repeated for v3)',
    )
    verb.add_argument(
        "--filters", metavar="JSON", help="array codecs before compression, such as '[\"numcodecs.delta\"]'"
    )
    verb.add_argument("--codecs", metavar="JSON", help="the whole chain of codecs of v3 arrays")


class Layout(TypedDict):
    """How arrays are stored."""

    chunks: ChunksChoice
    shards: ChunksChoice
    filters: CodecsLike
    compressors: CodecsLike
    codecs: Sequence[CodecLike] | None


class Chosen(Layout):
    """The choices of the options, as arguments of `convert` and of `tessarr.plan.convert`."""

    path: str
    kind: str | None
    zarr_format: int | str
    include: Sequence[str]
    exclude: Sequence[str]
    rename: Mapping[str, str]
    overwrite: bool
    verify: bool
    consolidate: bool
    plain: bool


def add_joining(verb: argparse.ArgumentParser) -> None:
    """Add the options of files: how many are joined, and whether packed values are unpacked."""
    verb.add_argument(
        "--along", metavar="DIMENSION",
        help="the dimension of which each of several files has a part, or a new one (default: that in which they differ)",
    )  # fmt: skip
    verb.add_argument("--allow-gaps", action="store_true", help="join files although steps are missing between them")
    verb.add_argument(
        "--unpack", action="store_true",
        help="write the floats for which packed integers stand (CF scale_factor and add_offset), NaN where missing",
    )  # fmt: skip


def layout_of(arguments: argparse.Namespace) -> Layout:
    """Parse the options of `add_layout`."""
    compressors = [codec for codec in map(parse_codec, arguments.compressors) if codec is not None]
    return {
        "chunks": parse_layout(arguments.chunks),
        "shards": parse_layout(arguments.shards),
        "filters": "keep" if arguments.filters is None else _json(arguments.filters, "--filters"),
        "compressors": (compressors or None) if arguments.compressors else "keep",
        "codecs": None if arguments.codecs is None else _json(arguments.codecs, "--codecs"),
    }


def chosen(arguments: argparse.Namespace) -> Chosen:
    """Parse the options of `add_choices`."""
    return {
        **layout_of(arguments),
        "path": arguments.path,
        "kind": arguments.kind,
        "zarr_format": arguments.format if arguments.format == "keep" else int(arguments.format or 3),
        "include": arguments.include,
        "exclude": arguments.exclude,
        "rename": _renames(arguments.rename),
        "overwrite": arguments.overwrite,
        "verify": arguments.verify,
        "consolidate": arguments.consolidate,
        "plain": arguments.plain,
    }


def source_of(arguments: argparse.Namespace) -> tuple[StoreLike | Sequence[str], Mapping[str, object] | None]:
    """Return the source, or several, and the options of its store; a node in a zip file is opened here."""
    sources: list[str] = arguments.source
    place, inner = split_place(sources[0])
    if len(sources) == 1 and inner:
        return open_node(sources[0], storage=arguments.source_storage), None
    return place if len(sources) == 1 else sources, storage_options(arguments.source_storage)


def run(arguments: argparse.Namespace) -> int:
    """Convert, and print the result."""
    source, source_options = source_of(arguments)
    if arguments.references:
        _check_with_references(arguments)
        if not arguments.dry_run:
            return _save_references(arguments, source, source_options)
    with bar() as progress, _processes(arguments, source) as executor:
        report = convert(
            source,
            arguments.dest,
            **chosen(arguments),
            along=arguments.along,
            gaps=arguments.allow_gaps,
            unpack=arguments.unpack,
            jobs=arguments.jobs,
            executor=executor,
            dry_run=arguments.dry_run,
            progress=progress,
            storage_options=storage_options(arguments.storage),
            source_storage_options=source_options,
        )
    if arguments.json:
        print_json(report.to_json())
        return OK
    for notice in report.plan.notices:
        note(f"note: {notice}")
    _print(report, references=arguments.references)
    return OK


def _save_references(
    arguments: argparse.Namespace, source: StoreLike | Sequence[str], source_options: Mapping[str, object] | None
) -> int:
    """Write references to the chunks of the source."""
    choices = chosen(arguments)
    with _processes(arguments, source) as executor:
        count = save_file_references(
            source, arguments.dest, kind=choices["kind"], along=arguments.along, gaps=arguments.allow_gaps,
            include=choices["include"], exclude=choices["exclude"], rename=choices["rename"],
            zarr_format=_format_of_references(arguments.format),
            overwrite=choices["overwrite"], jobs=arguments.jobs, executor=executor,
            storage_options=storage_options(arguments.storage), source_storage_options=source_options,
        )  # fmt: skip
    if arguments.json:
        print_json({"dest": arguments.dest, "references": count})
    else:
        print(f"{arguments.dest}: {counted(count, 'reference')}")
    return OK


def _check_with_references(arguments: argparse.Namespace) -> None:
    """Raise `ValueError` for an option that says how chunks are stored, or where the result is in a store."""
    _format_of_references(arguments.format)
    for option, (name, unset) in _NOT_WITH_REFERENCES.items():
        if getattr(arguments, name) != unset:
            raise ValueError(f"{option} is for copies, and --references leaves chunks where they are: choose one")


_NOT_WITH_REFERENCES: Mapping[str, tuple[str, object]] = {
    "--plain": ("plain", False), "--unpack": ("unpack", False), "--consolidate": ("consolidate", False),
    "--path": ("path", ""), "--chunks": ("chunks", "keep"), "--shards": ("shards", "keep"),
    "--filters": ("filters", None), "--compressor": ("compressors", []), "--codecs": ("codecs", None),
}  # fmt: skip
"""Options that are not given together with ``--references``: their attributes, and defaults."""


def _format_of_references(text: str | None) -> Literal[2, 3] | None:
    if text in ("1", "keep"):
        raise ValueError(f"--references writes documents of format 2 or 3, not --format {text}")
    return None if text is None else 2 if text == "2" else 3


def _processes(arguments: argparse.Namespace, source: object) -> AbstractContextManager[Executor | None]:
    """Return processes that scan files, where there are enough files to be worth their start."""
    many = (isinstance(source, str) and has_magic(source)) or (
        isinstance(source, list) and len(source) >= _FOR_PROCESSES
    )
    if is_file_url(source[0] if isinstance(source, list) and source else source):
        many = False  # scanning waits for answers, and threads have the credentials
    if arguments.jobs < 2 or not many:
        return nullcontext()
    return ProcessPoolExecutor(arguments.jobs, get_context("spawn"))


def _print(report: Report, *, references: bool) -> None:
    nodes: list[dict[str, Any]] = [dict(node.to_json()) for node in report.plan.nodes]
    kind = f"Zarr v{report.zarr_format}" if "|n5:" not in report.dest else "N5"
    if not report.written:
        print(f"would write {'references in ' * references}{kind} to {report.dest}:")
        rows = [(_name(node), _what(node), human(node["nbytes"]) if node["kind"] == "array" else "") for node in nodes]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        for name, what, size in rows:
            print(f"  {name:<{widths[0]}}  {what:<{widths[1]}}  {size}".rstrip())
    arrays = len(report.plan.arrays)
    summary = f"{counted(arrays, 'array')}, {counted(len(nodes) - arrays, 'group')}, {human(report.plan.nbytes)}"
    if not report.written:
        print(summary)
        return
    stored = ""
    if report.nbytes_stored is not None:
        ratio = report.plan.nbytes / report.nbytes_stored if report.nbytes_stored else 0
        stored = f", stored in {human(report.nbytes_stored)} (ratio {ratio:.2f})"
    verified = "read back and equal bit for bit" if report.verified else "not verified"
    print(f"{report.dest}: {kind}, {summary}{stored}; {verified}; {report.seconds:.1f} s")


def _name(node: Mapping[str, Any]) -> str:
    return str(node["path"])


def _what(node: Mapping[str, Any]) -> str:
    if node["kind"] == "group":
        return "group"
    data_type = node["data_type"]
    name = data_type if isinstance(data_type, str) else data_type["name"] if isinstance(data_type, dict) else "struct"
    text = f"{lengths(node['shape'], node['dimension_names'])} {name}, chunks "
    text += lengths(node["chunks"]) if node["chunks"] else "of differing shapes"
    return text + (f", shards {lengths(node['shards'])}" if node["shards"] else "")


# -- values of options ---------------------------------------------------------------------------------------------------


def parse_layout(text: str) -> str | tuple[int, ...] | dict[str, int] | None:
    """Parse an option for chunks or shards.

    >>> parse_layout("100, 50"), parse_layout("time=10,lat=-1"), parse_layout("auto"), parse_layout("none")
    ((100, 50), {'time': 10, 'lat': -1}, 'auto', None)
    """
    text = text.strip()
    if text == "none":
        return None
    try:
        if text.startswith("["):
            return tuple(int(size) for size in json.loads(text))
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if "=" in text:
            pairs = [part.partition("=") for part in parts]
            return {name.strip(): int(size) for name, _, size in pairs}
        if all(part.lstrip("-").isdigit() for part in parts) and parts:
            return tuple(map(int, parts))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{text!r} is not a layout; write lengths (100,50) or lengths by name (time=100,lat=50)"
        ) from error
    return text


def parse_codec(text: str) -> dict[str, Any] | str | None:
    """Parse an option for a codec: short, or JSON; ``None`` for "none".

    >>> parse_codec("zstd:5")
    {'name': 'zstd', 'configuration': {'level': 5, 'checksum': False}}
    >>> parse_codec("none"), parse_codec("lz4")
    (None, 'numcodecs.lz4')
    """
    text = text.strip()
    if text.startswith(("{", '"')):
        found: dict[str, object] | str = _json(text, "--compressor")
        return found
    name, *options = text.split(":")
    if name == "none":
        return None
    try:
        if name == "zstd" and len(options) <= 1:
            return {"name": "zstd", "configuration": {"level": int(options[0]) if options else 0, "checksum": False}}
        if name == "gzip" and len(options) <= 1:
            return {"name": "gzip", "configuration": {"level": int(options[0]) if options else 5}}
        if name == "blosc" and len(options) <= 3:
            return _blosc(options)
        if name in ("zlib", "bz2") and len(options) <= 1:
            level = {"configuration": {"level": int(options[0])}} if options else {}
            return {"name": f"numcodecs.{name}", **level}
    except ValueError as error:
        raise ValueError(f"{text!r} is not a codec: a level is a number, as in {name}:5") from error
    if options:
        raise ValueError(
            f"{text!r} is not a codec; write zstd:5, gzip:6, blosc:lz4:5:shuffle, or the JSON of the codec"
        )
    return f"numcodecs.{name}" if name in ("lz4", "lzma") else name


def _blosc(options: Sequence[str]) -> dict[str, object]:
    cname, level, shuffle = [*options, *("lz4", "5", "shuffle")[len(options) :]]
    # Without typesize: that of the array is used.
    return {
        "name": "blosc",
        "configuration": {"cname": cname, "clevel": int(level), "shuffle": shuffle, "blocksize": 0},
    }


def _json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{option} is not valid JSON: {error}") from error


def _renames(given: Sequence[str]) -> dict[str, str]:
    renames = {}
    for item in given:
        old, equals, new = item.partition("=")
        if not (old and equals and new):
            raise ValueError(f"--rename needs OLD=NEW, got {item!r}")
        renames[old.strip("/")] = new
    return renames
