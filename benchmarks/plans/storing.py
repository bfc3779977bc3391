"""Rows P10 and P11: copies to a server of S3 and back, and commits of Icechunk."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plans.row import FULL, NotInstalledError, Row, assert_equal, opened, timed

OBJECTS = 20_000 if FULL else 200
CHUNKS = 10_000 if FULL else 100
PROCESSES = 8 if FULL else 2
ROOT = Path(__file__).resolve().parents[2]
IN_FLIGHT = 16
BUCKET = "bench"


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """Start VersityGW over a folder; yield the variables that say where it is, and the credentials."""
    installed = Path(os.environ.get("TESSARR_TEST_SERVERS", ROOT / "build" / "test-servers")) / "bin" / "versitygw"
    program = str(installed) if installed.exists() else _program("versitygw")
    (folder / BUCKET).mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    keys = {"ROOT_ACCESS_KEY": "benchmark", "ROOT_SECRET_KEY": "benchmark-secret"}
    command = [program, "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(folder)]
    with subprocess.Popen(command, env={**os.environ, **keys}, stdout=subprocess.DEVNULL) as server:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert server.poll() is None, "the server ended"
                    time.sleep(0.1)
            yield {
                "AWS_ACCESS_KEY_ID": keys["ROOT_ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": keys["ROOT_SECRET_KEY"],
                "AWS_REGION": "us-east-1", "BENCH_S3": f"http://127.0.0.1:{port}",
            }  # fmt: skip
        finally:
            server.terminate()


def make_objects(path: Path) -> None:
    """Write an array of small chunks."""
    import numpy as np

    import tessarr

    array = tessarr.create_array(path / "a", shape=(OBJECTS * 1000,), chunks=(1000,), dtype="u4", compressors=None)
    for start in range(0, OBJECTS, 1000):
        array[start * 1000 : (start + 1000) * 1000] = np.arange(start * 1000, min(start + 1000, OBJECTS) * 1000)


def check_objects(source: Path, target: Path, _peer: str) -> None:
    """Compare what came back."""
    assert_equal(opened(source / "a"), opened(target))


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        raise NotInstalledError(f"{name} is not on PATH")
    return found


def _run(*command: str, **variables: str) -> None:
    # rclone refuses a file of certificates, which a server without TLS does not need.
    inherited = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    subprocess.run(command, env={**inherited, **variables}, check=True, stdout=subprocess.DEVNULL)


def tessarr_copy(source: str, target: str) -> None:
    """Copy there and back by plans."""
    import tessarr.plan

    names = ("access_key_id", "secret_access_key", "region")
    options: dict[str, Any] = {name: os.environ[f"AWS_{name.upper()}"] for name in names}
    options |= {"endpoint": os.environ["BENCH_S3"], "allow_http": True}
    url = f"s3://{BUCKET}/a"
    tessarr.plan.copy(f"{source}/a", url, verify=False, storage_options=options).run(slots=2)
    tessarr.plan.copy(url, target, verify=False, source_storage_options=options).run(slots=2)


def s5cmd_copy(source: str, target: str) -> None:
    """Copy there and back by s5cmd."""
    command = [_program("s5cmd"), "--endpoint-url", os.environ["BENCH_S3"], "--numworkers", str(IN_FLIGHT), "cp"]
    _run(*command, f"{source}/a/", f"s3://{BUCKET}/a/")
    _run(*command, f"s3://{BUCKET}/a/*", f"{target}/")


def rclone_copy(source: str, target: str) -> None:
    """Copy there and back by rclone."""
    command = [_program("rclone"), "copy", "--transfers", str(IN_FLIGHT)]
    remote = {"TYPE": "s3", "PROVIDER": "Other", "ENV_AUTH": "true", "ENDPOINT": os.environ["BENCH_S3"]}
    variables = {f"RCLONE_CONFIG_B_{name}": value for name, value in remote.items()}
    _run(*command, f"{source}/a", f"b:{BUCKET}/a", **variables)
    _run(*command, f"b:{BUCKET}/a", target, **variables)


def nothing(path: Path) -> None:
    """Make an empty folder: the source is computed."""
    path.mkdir()


def _dataset() -> Any:
    import dask.array as da
    import xarray as xr

    return xr.Dataset({"a": (("x",), da.arange(CHUNKS * 100, chunks=100, dtype="i4"))})


def check_commit(_source: Path, target: Path, _peer: str) -> None:
    """Compare what the last commit has, and count the commits."""
    import icechunk
    import numpy as np

    import tessarr

    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(target)))
    session = repository.readonly_session("main")
    assert len(list(repository.ancestry(branch="main"))) == 2, "commits"
    found: Any = tessarr.open_group(session.store, mode="r")["a"]
    assert np.array_equal(found[...], np.arange(CHUNKS * 100, dtype="i4"))


def _session(target: str) -> Any:
    import icechunk

    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(target))
    return repository.writable_session("main")


def tessarr_commit(_source: str, target: str) -> None:
    """Write from processes, merge their forks, and commit once."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    import tessarr.xarray

    session = _session(target)
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        tessarr.xarray.to_zarr(_dataset(), session.store, mode="w", executor=pool, zarr_format=3, consolidated=False)
    session.commit("written")


def icechunk_commit(_source: str, target: str) -> dict[str, float]:
    """Write by Icechunk's own function on a cluster of processes, and commit once."""
    import distributed
    from icechunk.xarray import to_icechunk

    session = _session(target)
    with (
        distributed.LocalCluster(n_workers=PROCESSES, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):

        def work() -> None:
            to_icechunk(_dataset(), session, mode="w")
            session.commit("written")

        return timed(work)


ROWS = {
    "P10": Row(
        f"{OBJECTS:,} objects to S3 and back", make_objects, check_objects,
        {"tessarr": tessarr_copy, "rclone": rclone_copy, "s5cmd": s5cmd_copy}, around=s3_server,
    ),
    "P11": Row(
        f"{CHUNKS:,} chunks by {PROCESSES} processes, one commit of Icechunk", nothing, check_commit,
        {"tessarr": tessarr_commit, "icechunk": icechunk_commit},
    ),
}  # fmt: skip
