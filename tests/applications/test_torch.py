"""PyTorch's `DataLoader` over an array, with the recipe of docs/applications.md; and tensors that reads fill (``out=``)."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr

pytest.importorskip("torch", reason="the extra `apps`; make test-apps")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "applications.md"


def recipe() -> str:
    """The code of the page."""
    (code,) = [block for block in PAGE.read_text(encoding="utf-8").split("```text\n") if "class ArrayDataset" in block]
    return code.partition("```")[0]


@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn"])
@pytest.mark.parametrize("shards", [None, (8, 4)], ids=["chunks", "shards"])
def test_workers_read_after_their_parent_did(start: str, shards: tuple[int, ...] | None, tmp_path: Path) -> None:
    values = np.arange(96, dtype="f4").reshape(24, 4)
    tessarr.create_array(tmp_path / "a.zarr", data=values, chunks=(2, 4), shards=shards)
    program = f"""
        from rows import ArrayDataset, torch

        if __name__ == "__main__":
            data = ArrayDataset("a.zarr")
            first = data[3]  # the threads of this process have started
            loader = torch.utils.data.DataLoader(
                data, batch_size=5, shuffle=True, num_workers=2, multiprocessing_context={start!r}, timeout=60
            )
            for epoch in range(2):
                rows = torch.cat(list(loader))
                print(rows.shape[0], sorted(rows[:, 0].int().tolist()) == list(range(0, 96, 4)), rows.dtype)
            print(torch.equal(first, data[3]))
    """
    (tmp_path / "rows.py").write_text(recipe())
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["24 True torch.float32"] * 2 + ["True"]


def test_a_batch_is_one_read(tmp_path: Path) -> None:
    import torch.utils.data

    values = np.arange(96, dtype="f4").reshape(24, 4)
    tessarr.create_array(tmp_path / "a.zarr", data=values, chunks=(2, 4))
    names: dict[str, object] = {}
    exec(recipe(), names)
    dataset = names["ArrayDataset"](tmp_path / "a.zarr")  # type: ignore[operator]
    batches = [batch.numpy() for batch in torch.utils.data.DataLoader(dataset, batch_size=10)]
    assert [batch.shape for batch in batches] == [(10, 4), (10, 4), (4, 4)]
    assert np.array_equal(np.concatenate(batches), values)
    assert [row.tolist() for row in dataset.__getitems__([7, 1])] == values[[7, 1]].tolist()


# -- tensors that are filled ---------------------------------------------------------------------------------------------

VALUES = np.arange(24, dtype="<i4").reshape(4, 6)


@pytest.fixture(params=["auto", "reference"])
def z(request: pytest.FixtureRequest) -> Iterator[tessarr.Array]:
    with tessarr.config.set({"engine": request.param}):
        yield tessarr.create_array({}, data=VALUES, chunks=(3, 4))


@pytest.fixture
def on_a_device() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")


def test_a_tensor_is_filled(z: tessarr.Array) -> None:
    import torch

    out: Any = torch.zeros((4, 6), dtype=torch.int32)
    filled: Any = z.read(out=out)
    assert filled is out
    np.testing.assert_array_equal(out.numpy(), VALUES)


@pytest.mark.usefixtures("on_a_device")
def test_a_tensor_on_a_device_is_filled_by_one_copy(z: tessarr.Array) -> None:
    import torch

    out: Any = torch.zeros((4, 6), dtype=torch.int32, device="cuda")
    filled: Any = z.lazy[:, ::-1].read(out=out)
    assert filled is out
    np.testing.assert_array_equal(out.cpu().numpy(), VALUES[:, ::-1])


@pytest.mark.usefixtures("on_a_device")
def test_pinned_memory_is_filled(z: tessarr.Array) -> None:
    import torch

    out: Any = torch.zeros((4, 6), dtype=torch.int32, pin_memory=True)
    filled: Any = z.read(out=out)
    assert filled is out
    np.testing.assert_array_equal(out.numpy(), VALUES)
