"""`tessarr.as_zarr`: who answers ``import zarr``, in this process and in those it starts. Each test is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tessarr

SOURCE = str(Path(tessarr.__file__).parents[1])


def run(code: str, *arguments: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a new interpreter; ``arguments`` come before it, such as ``-m tessarr.as_zarr``."""
    path = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def test_zarr_is_tessarr_from_install_to_uninstall() -> None:
    run("""
        import importlib.metadata, sys
        import tessarr, tessarr.as_zarr as alias
        before = alias.status()
        assert not before.installed and before.modules == ()
        alias.install()
        alias.install()
        import zarr, zarr.storage
        from zarr.core.buffer.cpu import Buffer
        assert zarr.Array is tessarr.Array and zarr.Group is tessarr.Group and zarr.config is tessarr.config
        assert zarr.core.buffer.cpu.Buffer is Buffer
        assert alias.status().installed and "zarr.storage" in alias.status().modules
        assert zarr.__version__ == importlib.metadata.version("zarr") == tessarr.__version__
        alias.uninstall()
        assert not alias.status().installed
        assert not [name for name in sys.modules if name.split(".")[0] == "zarr"]
        hidden = before.zarr_python
        try:
            found = importlib.metadata.version("zarr")
        except importlib.metadata.PackageNotFoundError:
            found = None
        assert found == hidden
        try:
            import zarr
        except ModuleNotFoundError:
            assert hidden is None
        else:
            assert zarr.Array is not tessarr.Array
    """)


def test_it_is_refused_when_zarr_python_is_in_use_already() -> None:
    done = run(
        """
        import sys, types
        sys.modules["zarr"] = types.ModuleType("zarr")
        import tessarr.as_zarr
        tessarr.as_zarr.install()
        """,
        check=False,
    )
    assert done.returncode == 1
    assert "AliasError" in done.stderr
    assert "restart the kernel" in done.stderr


def test_names_of_zarr_python_2_are_hidden_or_shown() -> None:
    names = "DirectoryStore NestedDirectoryStore FSStore KVStore N5Store LRUStoreCache"
    run(f"""
        import importlib.metadata
        import tessarr.as_zarr as alias
        alias.install()
        import zarr, zarr.storage
        names = {names!r}.split()
        assert not [name for name in names if hasattr(zarr, name) or hasattr(zarr.storage, name)]
        alias.uninstall()
        alias.install(version=2)
        import zarr, zarr.hierarchy
        from zarr.core import Array
        import zarr.storage
        assert not [name for name in names if not hasattr(zarr, name) or not hasattr(zarr.storage, name)]
        assert zarr.__version__ == importlib.metadata.version("zarr") == "2.18.7"
        assert zarr.group().create_dataset("x", shape=3, dtype="i4")._metadata.zarr_format == 2
        store = zarr.DirectoryStore("nowhere")
        assert Array is zarr.Array and zarr.hierarchy.Group is zarr.Group
        try:
            alias.install(version=3)
        except alias.AliasError:
            pass
        else:
            raise AssertionError("two versions at once")
        alias.uninstall()
        import tessarr
        assert tessarr.group()._metadata.zarr_format == 3
    """)


def test_a_directory_is_shown_as_zarr_python_2_shows_it(tmp_path: Path) -> None:
    run(f"""
        place = {str(tmp_path / "a.zarr")!r}
        import tessarr.as_zarr as alias
        alias.install(version=2)
        import zarr
        array = zarr.open(place, mode="w", shape=3, chunks=2, dtype="i4")
        array[:] = 1
        assert isinstance(array.store, zarr.DirectoryStore) and array.store.path == place
        assert zarr.open(place, mode="r").store.read_only
        store = zarr.DirectoryStore(place)
        assert zarr.open(store).store is store
        assert zarr.group().store is not None
    """)


def test_names_that_begin_with_a_slash_are_paths_from_the_root_in_zarr_python_2() -> None:
    run("""
        import tessarr.as_zarr as alias
        alias.install(version=2)
        import zarr
        store = {}
        root = zarr.group(store)
        group = root.create_group("a")
        group.create_dataset("/a/x", data=[1, 2])
        group.create_dataset("y", data=[3])
        root.create_group("b").require_group("/b/c")
        assert [*group] == [*group.array_keys()] == ["x", "y"]
        assert group["/a/x"][:].tolist() == [1, 2] and "/x" not in group and "/a/x" in group
        assert group["/b/c"].name == "/b/c" and group["/"] == root
        del group["/a/y"]
        zarr.consolidate_metadata(store)
        group = zarr.open_consolidated(store)["a"]
        assert [*group] == ["x"] and group["/a/x"].name == "/a/x" and "/a/y" not in group
        assert group["/b/c"].name == "/b/c" and [*group["/b"]] == ["c"]
        alias.uninstall()
        import tessarr
        assert tessarr.open_group(store)["a"]["/x"][:].tolist() == [1, 2]
    """)


def test_consolidated_metadata_is_used_where_it_is_asked_for_in_zarr_python_2(tmp_path: Path) -> None:
    run(f"""
        place = {str(tmp_path / "a.zarr")!r}
        import tessarr.as_zarr as alias
        alias.install(version=2)
        import zarr
        zarr.open_group(place, mode="w").create_dataset("x", data=[1])
        zarr.consolidate_metadata(place)
        zarr.open(place + "/x", mode="w", shape=2, dtype="f8")
        assert zarr.open(place)["x"].dtype == zarr.open_group(place)["x"].dtype == "f8"
        assert zarr.open_consolidated(place)["x"].dtype == "i8"
    """)


def test_a_module_that_zarr_python_lacks_is_not_found() -> None:
    run("""
        import tessarr.as_zarr
        tessarr.as_zarr.install()
        for name in ("zarr.nothing", "zarr.core.nothing", "zarr.stores.local"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                assert error.name and name.startswith(error.name), error
            else:
                raise AssertionError(name)
    """)


def test_no_other_importer_loads_a_second_copy() -> None:
    run("""
        import sys, importlib.machinery
        import tessarr.as_zarr
        tessarr.as_zarr.install()
        class First:
            def find_spec(self, name, path=None, target=None):
                return importlib.machinery.PathFinder.find_spec(name, path)
        sys.meta_path.insert(0, First())
        import zarr.core.array, tessarr
        assert zarr.core.array.Array is tessarr.Array
        import tessarr.facade.zarr3.core.array as ours, zarr.abc.store
        assert zarr.core.array.__facade__ is ours
        assert zarr.abc.store.Store is tessarr.facade.zarr3.abc.store.Store
    """)


def test_a_script_a_module_and_code_run_under_the_alias(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, zarr, tessarr\nassert zarr.Array is tessarr.Array\nprint(__name__, sys.argv[1:])\n")
    path = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    for arguments, expected in (
        ([str(script), "a", "-b"], "__main__ ['a', '-b']"),
        (["-m", "script", "a"], "__main__ ['a']"),
        (["-c", "import zarr, sys; print(zarr.__version__, sys.argv[1:])", "x"], f"{tessarr.__version__} ['x']"),
        (["--v2", "-c", "import zarr; print(zarr.__version__)"], "2.18.7"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "tessarr.as_zarr", *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == expected


def test_child_processes_have_the_alias_too(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent("""
        import multiprocessing, subprocess, sys

        def who():
            import zarr, tessarr
            return zarr.Array is tessarr.Array

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(who))
            print(subprocess.run([sys.executable, "-c", "import zarr; print(zarr)"], capture_output=True, text=True).stdout)
        """)
    )
    path = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "tessarr.as_zarr", str(script)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True\n<module 'zarr' of tessarr")


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.theirs = True\n")
    code = "import builtins, zarr; print(builtins.theirs, 'tessarr' in repr(zarr))"
    done = run(
        f"""
        import subprocess, sys
        import tessarr.as_zarr
        tessarr.as_zarr.install()
        print(subprocess.run([sys.executable, "-c", {code!r}], capture_output=True, text=True, check=True).stdout)
        """,
        PYTHONPATH=os.pathsep.join([SOURCE, str(tmp_path)]),
    )
    assert done.stdout.split() == ["True", "True"]


def test_a_function_that_refers_to_the_module_is_pickled() -> None:
    """dask pickles functions of a script by value, with the modules that they name."""
    run("""
        import pickle, tessarr.as_zarr
        tessarr.as_zarr.install()
        import cloudpickle, zarr, zarr.storage

        def make():
            return zarr.storage, zarr.zeros(shape=(2,), store={})[:].tolist()

        make.__module__ = "__main__"
        storage, values = pickle.loads(cloudpickle.dumps(make))()
        assert storage is zarr.storage and values == [0, 0]
        assert pickle.loads(pickle.dumps(zarr.core.sync)) is zarr.core.sync
    """)


def test_pickles_need_tessarr_and_not_the_alias(tmp_path: Path) -> None:
    place = tmp_path / "pickled"
    run(f"""
        import pickle
        import tessarr.as_zarr
        tessarr.as_zarr.install()
        import zarr, zarr.storage
        store = zarr.storage.LocalStore({str(tmp_path / "x.zarr")!r})
        z = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="i4")
        z[:] = 7
        open({str(place)!r}, "wb").write(pickle.dumps(z))
    """)
    done = run(f"""
        import pickle, sys
        z = pickle.load(open({str(place)!r}, "rb"))
        assert "zarr" not in sys.modules
        print(z[:].tolist(), type(z.store).__name__)
    """)
    assert done.stdout.split("\n")[0] == "[7, 7, 7, 7] LocalStore"


def test_notebooks_and_dask_have_their_hooks() -> None:
    run("""
        import tessarr.as_zarr as alias
        alias.load_ipython_extension(None)
        assert alias.status().installed
        alias.unload_ipython_extension(None)
        assert not alias.status().installed
        alias.dask_setup(None)
        assert alias.status().installed
    """)


@pytest.mark.parametrize(("wish", "version"), [("1", tessarr.__version__), ("2", "2.18.7"), ("0", None), ("", None)])
def test_the_environment_may_ask_for_it(wish: str, version: str | None) -> None:
    done = run(
        """
        import tessarr.as_zarr as alias
        alias.install_from_environment()
        print(alias.status().version)
        """,
        TESSARR_AS_ZARR=wish,
    )
    assert done.stdout.strip() == str(version)


def test_attributes_of_packages_are_the_modules_of_that_name() -> None:
    run("""
        import sys
        import tessarr.as_zarr
        tessarr.as_zarr.install()
        import zarr
        from zarr.api import asynchronous, synchronous
        assert synchronous is sys.modules["zarr.api.synchronous"]
        assert zarr.core.buffer is sys.modules["zarr.core.buffer"]
        assert asynchronous.zeros_like is asynchronous.zeros_like
        assert asynchronous.__all__ == synchronous.__all__
    """)


def test_zarr_testing_is_that_of_an_installed_zarr_python() -> None:
    pytest.importorskip("zarr", reason="zarr-python is an extra")
    run("""
        import sys
        import tessarr.as_zarr
        tessarr.as_zarr.install()
        from zarr.testing.store import StoreTests
        from zarr.testing.utils import assert_bytes_equal
        from zarr.abc.store import Store
        assert "tessarr" in repr(sys.modules["zarr.abc.store"])
        assert StoreTests.__module__ == "zarr.testing.store"
        tessarr.as_zarr.uninstall()
        assert not [name for name in sys.modules if name.partition(".")[0] == "zarr"]
    """)
