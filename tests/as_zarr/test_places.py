"""The alias where programs run: in the kernel of a notebook, in workers of dask and of pytest-xdist, and in editors."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tessarr
from tests.waiting import PATIENCE_S

ROOT = Path(tessarr.__file__).parents[2]
"""The checkout: `tests` and, below `src`, `tessarr`."""
OURS = "tessarr.core.array"
"""The module of `Array`, however it is named."""


def run(*arguments: str | Path, cwd: Path, check: bool = True) -> str:
    """Run a new interpreter in `cwd`; what it printed, errors included."""
    known = {name: value for name, value in os.environ.items() if name != "TESSARR_AS_ZARR"}
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, arguments)],
        env={
            **known,
            "PYTHONPATH": path,
            "JUPYTER_PLATFORM_DIRS": "1",
            "JUPYTER_CONFIG_DIR": str(cwd),
            "NO_COLOR": "1",
        },
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout
    return done.stdout


def script(place: Path, code: str) -> Path:
    file = place / "program.py"
    file.write_text(textwrap.dedent(code), encoding="utf-8")
    return file


KERNEL = f"""
import re
from jupyter_client.manager import KernelManager

def cells(*sources):
    manager = KernelManager()
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout={PATIENCE_S})
        for source in sources:
            def show(message):
                content = message["content"]
                text = content.get("text") or "\\n".join(content.get("traceback", ()))
                for line in re.sub("\\x1b\\\\[[0-9;]*m", "", text).splitlines():
                    print("cell:", line, flush=True)
            client.execute_interactive(source, output_hook=show, timeout={PATIENCE_S})
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
"""


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A folder with a module that runs cells, and with a package `zarr` that is not tessarr's."""
    pytest.importorskip("jupyter_client", reason="the extra `test` installs ipykernel")
    pytest.importorskip("ipykernel", reason="the extra `test` installs ipykernel")
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "zarr").mkdir()
    (tmp_path / "zarr" / "__init__.py").write_text("Array = type('Array', (), {'__module__': 'another.zarr'})")
    return tmp_path


def shown(printed: str) -> list[str]:
    """What the cells or the program showed; kernels and clusters print more."""
    return [line.removeprefix("cell: ") for line in printed.splitlines() if line.startswith("cell: ")]


def test_a_kernel_loads_and_unloads_the_extension(notebook: Path) -> None:
    program = script(
        notebook,
        """
        from kernel import cells
        where = "import zarr; print(zarr.Array.__module__)"
        cells("%load_ext tessarr.as_zarr", where, "%unload_ext tessarr.as_zarr\\ndel zarr", where)
        """,
    )
    assert shown(run(program, cwd=notebook)) == [OURS, "another.zarr"]


def test_a_kernel_that_imported_zarr_is_told_to_be_restarted(notebook: Path) -> None:
    program = script(
        notebook,
        """
        from kernel import cells
        cells("import zarr", "%load_ext tessarr.as_zarr", "print(zarr.Array.__module__)")
        """,
    )
    *error, last = shown(run(program, cwd=notebook))
    assert "AliasError" in "\n".join(error)
    assert "in a notebook restart the kernel first" in "\n".join(error)
    assert last == "another.zarr"


CLUSTER = """
    import dask, distributed, sys
    def where():
        import zarr
        return zarr.Array.__module__
    def has_zarr():
        import sys
        return "zarr" in sys.modules
    def total(z):
        return int(z[:].sum())
    if __name__ == "__main__":
        kwargs = dict(n_workers=1, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1")
        {settings}
        with distributed.LocalCluster(**kwargs) as cluster, distributed.Client(cluster) as client:
            {program}
"""


@pytest.mark.parametrize(
    "settings",
    ['kwargs["preload"] = ["tessarr.as_zarr"]', 'dask.config.set({"distributed.worker.preload": ["tessarr.as_zarr"]})'],
    ids=["argument", "setting"],
)
def test_a_worker_of_dask_preloads_the_alias(settings: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra `test` installs distributed")
    program = script(tmp_path, CLUSTER.format(settings=settings, program="print('cell:', *client.run(where).values())"))
    assert shown(run(program, cwd=tmp_path)) == [OURS]  # on a busy machine dask logs what it waits for


def test_an_array_sent_to_a_worker_needs_tessarr_there_and_not_the_alias(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra `test` installs distributed")
    sends = """
            import tessarr.as_zarr
            tessarr.as_zarr.install()  # the worker has started already
            import zarr
            z = zarr.create_array("x.zarr", shape=(4,), chunks=(2,), dtype="i4")
            z[:] = 7
            print("cell:", client.submit(total, z).result(), *client.run(has_zarr).values())
    """
    program = script(tmp_path, CLUSTER.format(settings="", program=sends.strip()))
    assert shown(run(program, cwd=tmp_path)) == ["28 False"]


def test_workers_of_pytest_have_the_alias_although_zarr_python_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("xdist", reason="the extra `test` installs pytest-xdist")
    code = f"""
        import importlib.metadata
        import os
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_zarr_is_tessarr(number):
            import zarr
            assert os.environ["PYTEST_XDIST_WORKER"]
            assert zarr.Array.__module__ == {OURS!r}
            assert zarr.__version__ == importlib.metadata.version("zarr") == {tessarr.__version__!r}
    """
    (tmp_path / "test_it.py").write_text(textwrap.dedent(code))
    printed = run("-m", "tessarr.as_zarr", "-m", "pytest", "-p", "no:zarr", "-n", "2", "-q", "test_it.py", cwd=tmp_path)
    assert "4 passed" in printed


USE = """
import zarr
import zarr.storage
from zarr.codecs import BloscCodec
from zarr.registry import get_codec_class, register_codec
from zarr.core.buffer import default_buffer_prototype

reveal_type(zarr.create_array({}, shape=(2, 3), dtype="f4"))
reveal_type(zarr.open_group("x").create_array)
reveal_type(zarr.storage.MemoryStore())
reveal_type(BloscCodec())
reveal_type(register_codec)
reveal_type(zarr.storage.FsspecStore)
get_codec_class("gzip")
zarr.core.dtype.Int32()
zarr.create_arry
"""


def test_a_type_checker_sees_tessarr_by_the_stubs(tmp_path: Path) -> None:
    printed = run("-m", "tessarr.as_zarr", "--stubs", "typings", cwd=tmp_path)
    assert printed.strip().endswith(f"stubs in {os.path.join('typings', 'zarr')}")
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nmypy_path = typings:{ROOT / 'src'}\nfollow_imports = silent\n")
    printed = run("-m", "mypy", "use.py", cwd=tmp_path, check=False)
    revealed = [
        line.partition("Revealed type is ")[2].strip('"') for line in printed.splitlines() if "Revealed" in line
    ]
    assert revealed[0] == "tessarr.core.array.Array"
    assert revealed[1].endswith("-> tessarr.core.array.Array")
    assert revealed[2:4] == [
        "tessarr.facade.zarr3.storage._memory.MemoryStore",
        "tessarr.codecs.bytes_to_bytes.blosc.BloscCodec",
    ]
    assert revealed[4].startswith("def (key: ")
    assert revealed[5].endswith("-> tessarr.facade.zarr3.storage._fsspec.FsspecStore")
    errors = [line for line in printed.splitlines() if "error:" in line]
    assert len(errors) == 1, errors
    assert 'Module has no attribute "create_arry"' in errors[0]


NAMES = """
import importlib, pkgutil, re, sys
from pathlib import Path
import tessarr.as_zarr
version = int(sys.argv[1])
facade = importlib.import_module(f"tessarr.facade.zarr{version}")
below = [found.name for found in pkgutil.walk_packages(facade.__path__, f"{facade.__name__}.")]
modules = {name.replace(facade.__name__, "zarr"): importlib.import_module(name) for name in [facade.__name__, *below]}
tables = {name: {*getattr(module, "__all__", ())} for name, module in modules.items()}
tables["zarr"] |= {*facade._HOME, *facade._SUBMODULES}
tessarr.as_zarr.install(version=version)
from tessarr.as_zarr.stubs import write_stubs
places = {path: path.relative_to("typings").with_suffix("") for path in write_stubs("typings", version)}
stubs = {".".join(place.parts).removesuffix(".__init__"): path.read_text() for path, place in places.items()}
for name, table in tables.items():
    shown = dir(importlib.import_module(name))
    stated = {line.rpartition(" ")[2] for line in stubs[name].splitlines()} | {*re.findall(r"(?m)^(\\w+):", stubs[name])}
    print(name, sorted(table - {*shown}), sorted(table - stated))
"""


@pytest.mark.parametrize("version", [2, 3])
def test_every_name_of_a_module_is_in_its_directory_and_its_stub(version: int, tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text(NAMES)
    found = run("names.py", str(version), cwd=tmp_path).splitlines()
    assert len(found) > (60 if version == 3 else 10)
    assert [line for line in found if not line.endswith(" [] []")] == []


def test_stubs_are_written_again_and_replace_nothing_else(tmp_path: Path) -> None:
    run("-m", "tessarr.as_zarr", "--stubs", "typings", cwd=tmp_path)
    assert (tmp_path / "typings" / "zarr" / "core" / "buffer" / "cpu.pyi").exists()
    run("-m", "tessarr.as_zarr", "--v2", "--stubs", "typings", cwd=tmp_path)
    assert not (tmp_path / "typings" / "zarr" / "core" / "buffer" / "cpu.pyi").exists()
    assert "DirectoryStore" in (tmp_path / "typings" / "zarr" / "storage.pyi").read_text()
    (tmp_path / "typings" / "zarr" / "own.pyi").write_text("x: int\n")
    printed = run("-m", "tessarr.as_zarr", "--stubs", "typings", cwd=tmp_path, check=False)
    assert "FileExistsError" in printed
    assert (tmp_path / "typings" / "zarr" / "own.pyi").exists()


@pytest.mark.parametrize("module", ["tessarr.as_zarr", "tessarr.zarr_python"])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [(["--nonsense", "x.py"], "unknown option --nonsense"), (["x.py"], "no such script: x.py"), (["-m"], "-m needs")],
)
def test_wrong_arguments_are_answered_by_the_usage(
    module: str, arguments: list[str], problem: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(problem)
    assert f"usage: python -m {module}" in done.stderr
    assert "Traceback" not in done.stderr
