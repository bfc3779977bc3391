"""``tessarr doctor``: show the abilities of this installation, and its problems."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import tessarr
from tessarr import registry
from tessarr.cli.places import storage_options
from tessarr.cli.printing import OK, PROBLEMS, add_storage, add_verb, human, print_json, table
from tessarr.common.extension import NOT_LOADED
from tessarr.engine.choose import NOT_BUILT, why_not_loaded
from tessarr.engine.native.chunk_cache import chunk_cache_info
from tessarr.errors import MissingDependencyError, TessarrError
from tessarr.settings import DEFAULTS, PREFIXES, WITHOUT_EFFECT, config
from tessarr.types import AnyArray, JSONObject

_REQUIRED = {"numpy": "numpy", "numcodecs": "tessarr.common.numcodecs", "google-crc32c": "google_crc32c"}
_VARIABLES = ("native", "as_zarr")
"""Environment variables of tessarr that set none of the settings: ``TESSARR_NATIVE``, ``TESSARR_AS_ZARR``."""
_OPTIONAL = {
    "rich": ("rich", "cli"),
    "obstore": ("obstore", "cloud"),
    "zfpy": ("zfpy", "codecs"),
    "pcodec": ("pcodec", "codecs"),
    "h5py": ("h5py", "convert"),
    "netCDF4": ("netCDF4", "convert"),
    "tifffile": ("tifffile", "convert"),
    "pillow": ("PIL", "convert"),
    "pyproj": ("pyproj", "crs"),
    "dask": ("dask", "dask"),
    "fsspec": ("fsspec", "fsspec"),
    "icechunk": ("icechunk", "icechunk"),
    "lmdb": ("lmdb", "kv"),
    "redis": ("redis", "kv"),
    "pymongo": ("pymongo", "kv"),
    "ml_dtypes": ("ml_dtypes", "ml"),
    "msgpack": ("msgpack", "msgpack"),
    "pyarrow": ("pyarrow", "reference"),
    "xarray": ("xarray", "xarray"),
}
"""Distribution → its module, and the extra of tessarr that installs it."""

_LITTLE: JSONObject = {"endian": "little"}
_SAMPLES: dict[str, JSONObject] = {
    "bytes": _LITTLE,
    "endian": _LITTLE,
    "transpose": {"order": [1, 0]},
    "sharding_indexed": {
        "chunk_shape": [2, 3],
        "codecs": [{"name": "bytes", "configuration": _LITTLE}],
        "index_codecs": [{"name": "bytes", "configuration": _LITTLE}, {"name": "crc32c"}],
    },
    "reshape": {"shape": [12]},
    "cast_value": {"data_type": "float64"},
    "scale_offset": {"scale": 1, "offset": 0},
    "bitround": {"keepbits": 23},
    "numcodecs.delta": {"dtype": "<f4"},
    "numcodecs.fixedscaleoffset": {"dtype": "<f4", "offset": 0, "scale": 1},
    "numcodecs.quantize": {"dtype": "<f4", "digits": 3},
    "numcodecs.bitround": {"keepbits": 23},
    "numcodecs.astype": {"decode_dtype": "<f4", "encode_dtype": "<f8"},
    "numcodecs.shuffle": {"elementsize": 4},
    "conditional": {"codecs": [{"name": "gzip", "configuration": {"level": 1}}]},
    "pad": {"location": "end", "nbytes": 4},
    "n5_default": {
        "codecs": [
            {"name": "transpose", "configuration": {"order": [1, 0]}},
            {"name": "bytes", "configuration": {"endian": "big"}},
        ]
    },
    "n5_varlen": {"codecs": [{"name": "vlen-utf8"}]},
    "tessarr.clipped": {"codecs": [{"name": "bytes", "configuration": _LITTLE}]},
    "tessarr.compressed_segmentation": {"block_size": [8, 8, 8]},
    "optional": {
        "mask_codecs": [{"name": "packbits"}],
        "data_codecs": [{"name": "bytes", "configuration": _LITTLE}],
    },
}
"""The configuration that a codec needs to store the sample, a small array of float32."""
_TEXT = {
    "vlen-utf8": str, "n5_varlen": str, "vlen-bytes": bytes, "tessarr.n5_strings": str, "tessarr.n5_objects": bytes,
}  # fmt: skip
_IMAGE = ("jpeg", "tessarr.n5_jpeg")
_LABELS = ("tessarr.compressed_segmentation",)
_BOOLEAN = ("packbits", "numcodecs.packbits")
_REFUSED = ("numcodecs.pickle",)


def add(verbs: object) -> None:
    """Add the verb."""
    verb = add_verb(
        verbs,
        "doctor",
        summary="show what this installation can do",
        text="Show versions, engines, codecs (each is tried), threads, caches, settings and optional packages, and their\n"
        "problems. The exit code is 1 when there are problems.",
        examples="""
tessarr doctor
tessarr doctor --json
tessarr doctor --probe data
tessarr doctor --probe s3://bucket/scratch --storage region=eu-central-1
""",
    )
    verb.add_argument(
        "--probe",
        metavar="PLACE",
        help="write to a new prefix in PLACE from several processes, say which promises hold there, and remove it",
    )
    verb.add_argument("--seconds", type=float, default=5.0, help="how long a probe lasts (5)")
    add_storage(verb)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the report."""
    if arguments.probe is not None:
        return _probe(arguments)
    report = examine()
    if arguments.json:
        print_json(report)
    else:
        print(table(_rows(report)))
        for problem in report["problems"]:
            print(f"PROBLEM: {problem}")
        if not report["problems"]:
            print("no problems found")
    return PROBLEMS if report["problems"] else OK


def _probe(arguments: argparse.Namespace) -> int:
    """Print what a probe of a place finds."""
    from tessarr.tools.probe import probe

    report = probe(arguments.probe, seconds=arguments.seconds, storage_options=storage_options(arguments.storage))
    if arguments.json:
        print_json({**asdict(report), "broken": [promise.text for promise in report.broken]})
        return PROBLEMS if report.broken else OK
    for fact in report.facts:
        print(f"{'yes' if fact.holds else 'NO':<12}  {fact.name}{f': {fact.detail}' if fact.detail else ''}")
    for promise in report.promises:
        word = {True: "holds", False: "BROKEN" if promise.expected else "not here", None: "refused"}[promise.holds]
        print(f"{word:<12}  {promise.text}\n{'':<12}  {promise.detail}".rstrip())
    return PROBLEMS if report.broken else OK


def examine() -> dict[str, Any]:
    """Collect the report as plain values; ``problems`` is a list of sentences."""
    problems: list[str] = []
    needing: list[str] = []
    packages = _packages(problems, needing)
    engine = _engine(problems)
    return {
        "tessarr": tessarr.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "location": os.path.dirname(tessarr.__file__),
        "engine": engine,
        "threads": _threads(needing),
        "cache": _cache(),
        "codecs": _codecs(problems),
        "data_types": list(registry.names("data_type")),
        "packages": packages,
        "settings": _settings(problems),
        "problems": problems,
    }


def _packages(problems: list[str], needing: list[str]) -> dict[str, object]:
    required = {name: _installed(name, module, problems, needing) for name, module in _REQUIRED.items()}
    for name, found in required.items():
        if found is None:
            problems.append(f"the package {name} is not installed; pip install {name}")
    problems += _left_out_of_numcodecs()
    optional = {
        name: {"version": _installed(name, module, problems, needing), "extra": extra}
        for name, (module, extra) in _OPTIONAL.items()
    }
    return {"required": required, "optional": optional}


def _left_out_of_numcodecs() -> list[str]:
    """Name the modules of numcodecs that cannot be imported, and the distributions for which they are."""
    try:
        from tessarr.common.numcodecs import LEFT_OUT
    except MissingDependencyError:
        return []  # numcodecs itself cannot be imported, which is said of it
    found = []
    for module, error in LEFT_OUT.items():
        part = module.rpartition(".")[2]
        name = {"msgpacks": "msgpack", "zarr3": "zarr"}.get(part, part)
        with suppress(PackageNotFoundError):
            name = f"{name} {version(name)}"
        found.append(f"the package {name} breaks {module}, which raises {type(error).__name__}: {error}")
    return found


def _installed(name: str, module: str, problems: list[str], needing: list[str]) -> str | None:
    """Return the version of a distribution whose module can be imported."""
    try:
        found = version(name)
    except PackageNotFoundError:
        return None
    free = not _gil()
    try:
        import_module(module)
    except Exception as error:  # another package may raise any error on import
        problems.append(
            f"the package {name} {found} is installed and cannot be imported: {type(error).__name__}: {error}"
        )
    if free and _gil():
        needing.append(name)
    return found


def _gil() -> bool:
    """Return whether the GIL is enabled; free-threaded Python enables it for a package that needs it."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def _engine(problems: list[str]) -> dict[str, Any]:
    wanted = config.get("engine", "auto")
    try:
        import_module("tessarr.engine.native.engine")
        native, reason = True, "installed"
    except NOT_LOADED as error:
        native, reason = False, f"the native engine is off: {why_not_loaded(error)}"
        if why_not_loaded(error) != NOT_BUILT:
            problems.append(
                f"the native engine is installed and cannot be loaded: {error}; build tessarr for this Python"
            )
        elif wanted == "native":
            problems.append("the setting engine is 'native', and the native engine is not built")
    if wanted not in ("auto", "native", "reference"):
        problems.append(f"the setting engine is {wanted!r}; it must be 'auto', 'native' or 'reference'")
    return {"setting": wanted, "native": native, "native_reason": reason, "reference": True}


def _threads(needing: list[str]) -> dict[str, object]:
    from tessarr.engine.processors import processors

    return {
        "used": processors(),
        "processors": os.cpu_count(),
        "setting": config.get("threading.max_workers", None),
        "requests": config.get("async.concurrency", None),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "gil": _gil(),
        "gil_needed_by": needing,
    }


def _cache() -> dict[str, object]:
    """Describe the native engine's cache of decoded chunks."""
    return {"nbytes": chunk_cache_info().capacity}


def _codecs(problems: list[str]) -> dict[str, Any]:
    found: dict[str, object] = {}
    for name in registry.names("codec"):
        if name in _REFUSED:
            found[name] = {"state": "refused", "engine": None, "reason": "it would run code from the data"}
            continue
        try:
            found[name] = {"state": "ok", "engine": _try(name), "reason": None}
        except MissingDependencyError as error:
            found[name] = {"state": "missing", "engine": None, "reason": str(error)}
        except Exception as error:  # a codec of another package may raise any error; it is reported
            if isinstance(error, TessarrError) and not _is_builtin(name):
                reason = f"not tried: {error}"
                found[name] = {"state": "registered", "engine": None, "reason": reason}
                continue
            found[name] = {"state": "broken", "engine": None, "reason": str(error)}
            problems.append(f"the codec {name} does not work: {type(error).__name__}: {error}")
    return found


def _is_builtin(name: str) -> bool:
    return str(getattr(registry.get("codec", name), "__module__", "")).startswith("tessarr.")


def sample(name: str, times: int = 1) -> tuple[dict[str, Any], Any] | None:
    """Make arguments of `tessarr.create_array` for a small array with a codec, and its values; ``None`` for a refused
    codec.

    The array has 12 elements, or 2, repeated `times` times.

    Raises `TessarrError` when the codec cannot be made: a package or an option is missing.
    """
    from tessarr.codecs.base import ArrayToArray, ArrayToBytes
    from tessarr.codecs.parse import codec_from

    if name in _REFUSED:
        return None
    spelling, name = name, name.removeprefix("zarrs.").rpartition("/")[2].replace("vlen_", "vlen-")
    options = {"shape": [12 * times]} if name == "reshape" else _SAMPLES.get(name)
    codec = codec_from(spelling if options is None else {"name": spelling, "configuration": options})
    values: AnyArray = np.arange(12, dtype="float32").reshape(4, 3)
    if name in _TEXT:
        values = (
            np.array([["a", "b"]], dtype=np.dtypes.StringDType())
            if _TEXT[name] is str
            else np.array([[b"a", b"b"]], dtype=object)
        )
    elif name in _BOOLEAN:
        values = values % 2 == 0
    elif name in _IMAGE:
        values = np.full((8, 8), 128, "uint8")  # values that a lossy codec keeps exactly
    elif name in _LABELS:
        values = np.arange(8, dtype="uint32").reshape(2, 2, 2)
    values = np.concatenate([values] * times)
    place = (
        "filters"
        if isinstance(codec, ArrayToArray)
        else "serializer"
        if isinstance(codec, ArrayToBytes)
        else "compressors"
    )
    dtype: object = _TEXT.get(name, values.dtype)
    if name == "optional":  # also of zarrs: a prefix is removed above
        dtype = {"name": "optional", "configuration": {"name": "float32"}}
    chunks = (1,) * values.ndim if name == "tessarr.n5_objects" else values.shape
    return {"shape": values.shape, "chunks": chunks, "dtype": dtype, "compressors": None, place: codec}, values


def _try(name: str) -> str:
    """Store and read a small array with a codec; return the engine that served it in a local directory."""
    import tempfile
    import warnings

    with tempfile.TemporaryDirectory(prefix="tessarr-doctor-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sample(name)
        assert found is not None
        arguments, values = found
        array = tessarr.create_array(folder, **arguments)
        array[...] = values
        stored = np.asarray(tessarr.open_array(folder, mode="r")[...])
        if stored.tolist() != values.tolist():
            raise ValueError("decoding does not give the encoded values")
        return array.engine.name


def _settings(problems: list[str]) -> dict[str, object]:
    """Return the settings that differ from the defaults, and those from the environment."""
    changed = {name: config.get(name) for name in _names(DEFAULTS) if config.get(name, None) != _default(name)}
    variables = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    for name in variables:
        prefix = next(prefix for prefix in PREFIXES if name.startswith(prefix))
        top = name.removeprefix(prefix).lower().split("__")[0]
        if (
            prefix == "TESSARR_"
            and top not in {known.replace("-", "_") for known in DEFAULTS}
            and top not in _VARIABLES
        ):
            problems.append(f"the environment variable {name} names no setting")
    idle = [name for name in changed if name in WITHOUT_EFFECT]
    return {"changed": changed, "without_effect": idle, "environment": variables}


def _names(tree: Mapping[str, object], above: str = "") -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _names(value, f"{above}{name}.")
        elif not isinstance(value, dict):
            yield above + name


def _lock(threads: dict[str, Any]) -> str:
    """Describe the state of free threading."""
    if not threads["free_threaded"]:
        return ""
    needing = ", ".join(threads["gil_needed_by"])
    if needing:
        return f", free-threaded until {needing} is imported, which needs the GIL"
    return ", free-threaded, with its GIL on (PYTHON_GIL=1?)" if threads["gil"] else ", free-threaded"


def _default(name: str) -> object:
    value: Any = DEFAULTS
    for part in name.split("."):
        value = value[part]
    return value


def _rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    engine, threads, cache = report["engine"], report["threads"], report["cache"]
    codecs, packages = report["codecs"], report["packages"]
    rows = [
        ("tessarr", f"{report['tessarr']} in {report['location']}"),
        ("python", f"{report['python']} on {report['platform']}{_lock(threads)}"),
        (
            "engine",
            f"{'native' if engine['native'] else 'reference'}: {engine['native_reason']}; setting {engine['setting']!r}",
        ),
        (
            "threads",
            (
                f"{threads['used']} of {threads['processors']} processors; "
                f"at most {threads['requests']} requests in flight to one origin"
            ),
        ),
        ("cache", f"{human(cache['nbytes'])} of decoded chunks" if cache["nbytes"] else "none"),
    ]
    for state, label in (("native", "codecs, native"), ("reference", "codecs, reference")):
        names = [name for name, found in codecs.items() if found["engine"] == state]
        rows.append((label, _wrapped(names)))
    for state in ("missing", "registered", "broken", "refused"):
        names = [name for name, found in codecs.items() if found["state"] == state]
        if names:
            rows.append((f"codecs, {state}", _wrapped(names)))
    rows.append(("packages", _wrapped([f"{name} {found}" for name, found in packages["required"].items() if found])))
    there = [f"{name} {found['version']}" for name, found in packages["optional"].items() if found["version"]]
    absent = [f"{name} [{found['extra']}]" for name, found in packages["optional"].items() if not found["version"]]
    rows += [("extras, installed", _wrapped(there)), ("extras, missing", _wrapped(absent))]
    changed, idle = report["settings"]["changed"], report["settings"]["without_effect"]
    settings = [f"{name}={value!r}{' (without effect)' * (name in idle)}" for name, value in changed.items()]
    rows.append(("settings", _wrapped(settings) if settings else "all at their defaults"))
    return rows


def _wrapped(names: list[str]) -> str:
    from textwrap import fill

    return fill(", ".join(names), 96, break_long_words=False, break_on_hyphens=False) or "none"
