"""Implementations of Zarr that read an array from files: values, or a refusal."""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import warnings
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorstore
import zarr
import zarrista

import tessarr
from tessarr.errors import TessarrError
from tessarr.storage import LocalStore
from tests.differential.encoding import Values
from tests.differential.samples import Sample
from tests.stores.remote.servers import installed_servers


class Refusal(NamedTuple):
    """An array is not read; `typed` is whether the error is one that callers can expect."""

    message: str
    typed: bool = True


Answer = Values | Refusal
Reader = Callable[[Path, Sample], Values]
ENGINES = ("native", "reference")
MEMORY = 8 << 30
"""Bytes of address space of a reader that has a process of its own."""


def _tessarr(engine: str, place: Path, _sample: Sample) -> Values:
    # An array that the native engine does not serve is read by the reference engine.
    with tessarr.config.set({"engine": "auto" if engine == "native" else engine}):
        opened = tessarr.open_array(LocalStore(place), mode="r")
        return np.asarray(opened[...])


def _zarr_python(place: Path, sample: Sample) -> Values:
    opened: Any = zarr.open_array(str(place), mode="r", zarr_format=3 if sample.zarr_format == 3 else 2)
    return np.asarray(opened[...])


def _tensorstore(place: Path, sample: Sample) -> Values:
    driver = "zarr3" if sample.zarr_format == 3 else "zarr"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{place}/"}}
    return np.asarray(tensorstore.open(spec, open=True, read=True).result().read().result())


def _zarrs(place: Path, _sample: Sample) -> Values:
    opened: Any = zarrista.Array.open(zarrista.store.FilesystemStore(str(place)))
    return np.asarray(opened[tuple(slice(0, length) for length in opened.shape)].to_numpy())


class Apart:
    """A reader in a process of its own, which may end when the reader asks for more memory than there is."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._questions, theirs = context.Pipe()
        self._process = context.Process(target=_answer_all, args=(self._read, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def read(self, place: Path, sample: Sample) -> Values:
        try:
            self._questions.send((place, sample))
            answer: Answer = self._questions.recv()
        except (EOFError, OSError):
            self.close()
            status = self._process.exitcode
            self._start()
            raise RuntimeError(f"the process of the reader ended with status {status}") from None
        if isinstance(answer, Refusal):
            raise ValueError(answer.message)
        return answer

    def close(self) -> None:
        """End the process."""
        self._questions.close()
        self._process.join()


def _answer_all(read: Reader, questions: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what a process says when it ends for want of memory
    warnings.simplefilter("ignore")
    while True:
        try:
            place, sample = questions.recv()
        except EOFError:
            return
        questions.send(_answer(read, place, sample))


class Zarrita:
    """zarrita.js in a process of Node.js, which reads one array after another."""

    def __init__(self, modules: Path) -> None:
        self._script = modules / "differential.mjs"
        shutil.copyfile(Path(__file__).with_name("zarrita.mjs"), self._script)
        self._start()

    def _start(self) -> None:
        command = ["node", str(self._script)]
        self._left = 10_000
        """How many arrays this process reads: damaged ones take memory of its codecs, until these refuse everything."""
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, _place: Path, sample: Sample) -> Values:
        self._left -= 1
        if self._left < 0:
            self.close()
            self._start()
        assert self._process.stdin
        assert self._process.stdout
        files = {path: base64.b64encode(content).decode() for path, content in sample.files.items()}
        self._process.stdin.write(json.dumps({"files": files, "v2": sample.zarr_format == 2}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self.close()
            self._start()
            raise RuntimeError("the process of zarrita ended")
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        if not answer["shape"]:
            text = answer["scalar"]
            value = {"true": True, "false": False}.get(text) if answer["dtype"] == "bool" else _number(text)
            return np.array(value, answer["dtype"])
        flat = np.frombuffer(base64.b64decode(answer["data"]), answer["dtype"])
        strides = [step * flat.itemsize for step in answer["stride"]]
        return (
            np.lib.stride_tricks.as_strided(flat, answer["shape"], strides)
            if flat.size
            else flat.reshape(answer["shape"])
        )

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text.replace("Infinity", "inf"))


class Readers:
    """All readers that are installed, by name."""

    def __init__(self) -> None:
        self._zarrs = Apart(_zarrs)
        self.readers: dict[str, Reader] = {
            **{engine: partial(_tessarr, engine) for engine in ENGINES},
            "zarr-python": _zarr_python,
            "TensorStore": _tensorstore,
            "zarrs": self._zarrs.read,
        }
        self._zarrita: Zarrita | None = None
        modules = installed_servers() / "zarrita"
        if shutil.which("node") is not None and (modules / "node_modules" / "zarrita").exists():
            self._zarrita = Zarrita(modules)
            self.readers["zarrita"] = self._zarrita.read

    def close(self) -> None:
        """End the processes of zarrs and zarrita."""
        self._zarrs.close()
        if self._zarrita:
            self._zarrita.close()

    def ask(self, sample: Sample, place: Path) -> dict[str, Answer]:
        """What each reader makes of a sample that is in the directory `place`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {name: _answer(read, place, sample) for name, read in self.readers.items()}


def _answer(read: Reader, place: Path, sample: Sample) -> Answer:
    try:
        return read(place, sample)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        return Refusal(f"{type(error).__name__}: {error}", isinstance(error, TessarrError))
