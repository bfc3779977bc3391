"""Other libraries read an array while appends are pending: complete rows only, of v2 and v3."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import subprocess
import warnings
from collections.abc import Callable, Generator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.array_parts.append import append_steps
from tessarr.core.asynchronous.sans_io import Call
from tessarr.errors import ConflictError
from tests.simulation.simulator import Bucket, Client
from tests.stores.remote.servers import find_program, zarrita_modules

CHUNKS = 4
ROWS = 6


def read_by_tessarr(place: Path, zarr_format: int) -> Any:
    return tessarr.open_array(place, mode="r")[...]


def read_by_zarr_python(place: Path, zarr_format: int) -> Any:
    zarr = pytest.importorskip("zarr")
    return zarr.open_array(str(place), mode="r")[...]


def read_by_tensorstore(place: Path, zarr_format: int) -> Any:
    tensorstore = pytest.importorskip("tensorstore")
    driver = "zarr3" if zarr_format == 3 else "zarr"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{place}/"}}
    return tensorstore.open(spec, read=True, open=True).result().read().result()


def read_by_zarrs(place: Path, zarr_format: int) -> Any:
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("zarrs")
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        return zarr.open_array(str(place), mode="r")[...]


def read_by_zarrita(place: Path, zarr_format: int) -> Any:
    process = zarrita()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{json.dumps([str(place), zarr_format])}\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline() or '{"error": "the process has ended"}')
    assert "error" not in answer, answer["error"]
    return np.array(answer["values"])


@cache
def zarrita() -> subprocess.Popen[str]:
    """A process that reads the arrays that its input names, each from the file system: it keeps nothing between two."""
    node = find_program("node")
    script = zarrita_modules() / f"pending-{os.getpid()}.mjs"
    script.write_text(ZARRITA, encoding="utf-8")
    process = subprocess.Popen([node, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end() -> None:
        process.communicate()  # its input ends, and so it does
        script.unlink()

    atexit.register(end)
    return process


def read_by_gdal(place: Path, zarr_format: int) -> Any:
    """By GDAL's program; of v3, which GDAL reads from 3.12 on, by the GDAL of rasterio where that of the program is older."""
    program = Path(find_program("gdallocationinfo")).with_name("gdalmdiminfo")  # of the same package
    version = run(str(program), "--version").strip()
    if zarr_format == 2 or is_recent(version.split()[1].rstrip(",")):
        (array,) = json.loads(run(str(program), "-detailed", f'ZARR:"{place}"'))["arrays"].values()
        return np.array(array["values"])
    reason = f"GDAL reads Zarr v3 from 3.12 on, this is {version}; rasterio has a newer one for Python 3.12 and later"
    rasterio = pytest.importorskip("rasterio", "1.5", reason=reason)
    with warnings.catch_warnings(action="ignore"), rasterio.open(f'ZARR:"{place}"') as opened:
        return opened.read().reshape(-1)  # one row of pixels


def is_recent(version: str) -> bool:
    major, minor = map(int, version.split(".")[:2])
    return (major, minor) >= (3, 12)


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


ZARRITA = """
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import * as zarr from "zarrita";
async function values(place, format) {
  const get = (key) => readFile(place + key).catch(() => undefined);
  const getRange = async (key, range) => {
    const value = await get(key);
    const begin = range.suffixLength === undefined ? range.offset : Math.max(0, (value?.length ?? 0) - range.suffixLength);
    return value?.slice(begin, range.suffixLength === undefined ? range.offset + range.length : undefined);
  };
  const array = await zarr.open[`v${format}`](zarr.root({ get, getRange }), { kind: "array" });
  return Array.from((await zarr.get(array)).data);
}
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await values(...JSON.parse(line)).then((values) => ({ values }), (error) => ({ error: String(error) }));
  console.log(JSON.stringify(answer));
}
"""
READERS = [read_by_tessarr, read_by_zarr_python, read_by_tensorstore, read_by_zarrs, read_by_zarrita, read_by_gdal]


def yielded(call: Call) -> Generator[Sequence[Call], list[object], Any]:
    """Yield every call to the driver, also one without a round trip."""
    (result,) = yield (call,)
    return result


class Halted:
    """An append that stopped when its rows were stored, before they are published."""

    def __init__(self, store: Client, values: Any) -> None:
        self.steps = append_steps(tessarr.open_array(store, mode="r+"), values, 0)
        before = set(store.bucket.values)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Call, "__await__", yielded)
            self.at = self.steps.send(None)
            while True:
                self.answers = [call.now() for call in self.at]
                if any(
                    key.rpartition("/")[2] not in ("zarr.json", ".tessarr_append") for key in {*store.list()} - before
                ):
                    return
                self.at = self.steps.send(self.answers)

    def go_on(self) -> Any:
        """Publish."""
        try:
            self.at = self.steps.send(self.answers)
            while True:
                try:
                    answers = [call.now() for call in self.at]
                except Exception as error:
                    self.at = self.steps.throw(error)
                else:
                    self.at = self.steps.send(answers)
        except StopIteration as end:
            return end.value


def with_member(directory: Path, bucket: Bucket) -> Path:
    """What is in the bucket, as files."""
    for key, value in bucket.values.items():
        (directory / key).parent.mkdir(parents=True, exist_ok=True)
        (directory / key).write_bytes(value)
    return directory


@pytest.fixture(params=[2, 3])
def array(request: pytest.FixtureRequest) -> tuple[Client, int]:
    store = Client("a", Bucket())
    data = 1 + np.arange(ROWS, dtype="i4")
    tessarr.create_array(store, data=data, chunks=(CHUNKS,), zarr_format=request.param, fill_value=0)
    return store, request.param


@pytest.mark.parametrize("read", READERS)
@pytest.mark.filterwarnings("ignore:Object at:UserWarning")
def test_readers_see_complete_rows_only_while_appends_are_pending(
    array: tuple[Client, int], read: Callable[[Path, int], Any], tmp_path: Path
) -> None:
    store, zarr_format = array
    first = Halted(store, np.full(5, 50, "i4"))
    second = Halted(Client("b", store.bucket), np.full(7, 70, "i4"))
    before = [*range(1, 1 + ROWS)]
    assert read(with_member(tmp_path / "pending", store.bucket), zarr_format).tolist() == before
    assert first.go_on() == (ROWS + 5,)
    assert read(with_member(tmp_path / "one", store.bucket), zarr_format).tolist() == [*before, *[50] * 5]
    assert second.go_on() == (ROWS + 12,)
    assert read(with_member(tmp_path / "both", store.bucket), zarr_format).tolist() == [*before, *[50] * 5, *[70] * 7]


def test_the_document_is_as_before_when_nothing_is_pending(array: tuple[Client, int]) -> None:
    store, zarr_format = array
    name = "zarr.json" if zarr_format == 3 else ".zarray"
    before = json.loads(store.bucket.values[name])
    halted = Halted(store, np.full(5, 50, "i4"))
    pending = json.loads(store.bucket.values[name])
    member = pending.pop("tessarr_append", None)
    assert (member is not None) == (zarr_format == 3)
    assert pending == before
    assert halted.go_on() == (ROWS + 5,)
    assert json.loads(store.bucket.values[name]) == {**before, "shape": [ROWS + 5]}


def test_a_foreign_writer_that_grows_the_array_is_noticed(array: tuple[Client, int]) -> None:
    store, zarr_format = array
    name = "zarr.json" if zarr_format == 3 else ".zarray"
    halted = Halted(store, np.full(5, 50, "i4"))
    document = json.loads(store.bucket.values[name])
    store.set(name, json.dumps({**document, "shape": [ROWS + 3]}).encode())
    with pytest.raises(ConflictError, match="ignores pending appends"):
        halted.go_on()
    with pytest.raises(ConflictError, match="ignores pending appends"):
        tessarr.open_array(Client("b", store.bucket), mode="r+").append([1])


def test_a_foreign_writer_that_drops_the_reservation_is_noticed() -> None:
    store = Client("a", Bucket())
    tessarr.create_array(store, data=np.arange(ROWS), chunks=(CHUNKS,))
    halted = Halted(store, np.full(5, 50))
    document = json.loads(store.bucket.values["zarr.json"])
    del document["tessarr_append"]
    store.set("zarr.json", json.dumps({**document, "shape": [100]}).encode())
    with pytest.raises(ConflictError, match="ignores pending appends"):
        halted.go_on()


def test_zarr_python_s_own_append_while_one_is_pending_is_noticed(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    store = Client("a", Bucket())
    tessarr.create_array(store, data=np.arange(ROWS), chunks=(CHUNKS,))
    halted = Halted(store, np.full(5, 50))
    memory = zarr.storage.MemoryStore()
    for key, value in store.bucket.values.items():
        asyncio.run(memory.set(key, zarr.core.buffer.cpu.Buffer.from_bytes(value)))
    zarr.open_array(memory, mode="r+").append(np.arange(3))
    written = asyncio.run(memory.get("zarr.json", zarr.core.buffer.default_buffer_prototype()))
    store.set("zarr.json", written.to_bytes())
    with pytest.raises(ConflictError, match="ignores pending appends"):
        halted.go_on()


def test_copies_and_models_of_the_array_have_no_reservations(array: tuple[Client, int]) -> None:
    store, _ = array
    halted = Halted(store, np.full(5, 50, "i4"))
    copy = tessarr.from_array({}, data=tessarr.open_array(store, mode="r"))
    assert copy[...].tolist() == [*range(1, 1 + ROWS)]
    for document in tessarr.open_array(store, mode="r")._metadata.documents().values():
        assert "tessarr_append" not in document
    halted.go_on()
