"""Progress of long work in notebooks: a bar below the cell, after a while, and only in a kernel."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import tessarr
from tessarr.core.notebook import bar as bars_of_notebooks
from tessarr.core.notebook.bar import NotebookBar, shows_progress
from tessarr.tools.check import check
from tessarr.types import Progress


class Shown:
    """What would be below a cell, and a clock that only `wait` moves."""

    def __init__(self) -> None:
        self.contents: list[Any] = []
        self.now = 0.0

    def __call__(self, content: object) -> Shown:
        self.contents.append(content)
        return self

    def update(self, content: object) -> None:
        self.contents.append(content)

    def bar(self, what: str, *, nbytes: bool = False) -> NotebookBar:
        return NotebookBar(what, nbytes=nbytes, clock=lambda: self.now, shower=self)


def test_a_bar_appears_after_half_a_second_and_is_replaced_a_few_times_a_second() -> None:
    shown = Shown()
    with shown.bar("check") as bar:
        for second, done in ((0.1, 1), (0.4, 2), (0.6, 3), (0.7, 4), (0.9, 5)):
            shown.now = second
            bar(done, 8, "/<b>")
    assert [repr(one) for one in shown.contents] == [
        "check: 3 of 8, /<b>",
        "check: 5 of 8, /<b>",
        "check: 8 of 8, done after 0.9 s",
    ]
    html = shown.contents[0]._repr_html_()
    assert 'max="8" value="3"' in html
    assert "/&lt;b&gt;" in html


def test_short_work_shows_nothing_and_stopped_work_says_where() -> None:
    shown = Shown()
    with shown.bar("check") as bar:
        bar(1, 2, "/a")
    assert shown.contents == []
    with pytest.raises(ValueError, match="full"), shown.bar("convert", nbytes=True) as bar:  # noqa: PT012 - the state before
        shown.now = 2.0
        bar(1 << 20, 4 << 20, "/a")
        raise ValueError("full")
    assert repr(shown.contents[-1]) == "convert: 1.0M of 4.0M, stopped after 2.0 s"


def test_only_the_outermost_work_shows_a_bar_and_the_caller_s_own_function_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bars: list[str] = []

    class Recorded(NotebookBar):
        def __init__(self, what: str, **options: Any) -> None:
            bars.append(what)
            super().__init__(what, **options)

    monkeypatch.setattr(bars_of_notebooks, "NotebookBar", Recorded)

    @shows_progress()
    def inner(*, progress: Progress | None = None) -> bool:
        return progress is None

    @shows_progress()
    def outer_work(*, progress: Progress | None = None) -> bool:
        return inner()

    assert outer_work()
    assert bars == []
    monkeypatch.setattr(bars_of_notebooks, "in_notebook", lambda: True)
    assert outer_work()
    assert bars == ["outer work"]
    assert not inner(progress=lambda *_: None)
    assert bars == ["outer work"]
    assert not inner()
    assert bars == ["outer work", "inner"]


def test_a_function_that_shows_progress_keeps_its_signature() -> None:
    assert "progress" in inspect.signature(check).parameters
    assert check.__doc__ is not None


def test_a_kernel_shows_the_bar_of_a_check(tmp_path: Path) -> None:
    jupyter = pytest.importorskip("jupyter_client.manager", reason="the extra `test` installs ipykernel")
    pytest.importorskip("ipykernel", reason="the extra `test` installs ipykernel")
    group = tessarr.open_group(tmp_path / "g.zarr", mode="w")
    for name in "abc":
        group.create_array(name, shape=4, dtype="i4")
    source = Path(tessarr.__file__).resolve().parents[1]
    manager, client = jupyter.start_new_kernel(kernel_name="python3", startup_timeout=60)
    received: list[Any] = []
    try:
        client.execute_interactive(
            f"import sys; sys.path.insert(0, {str(source)!r})\n"
            "import tessarr.tools.check as tool, tessarr.core.notebook.bar as bars\n"
            f"bars._PATIENCE_S = 0\nreport = tool.check({str(tmp_path / 'g.zarr')!r}); assert report.ok",
            output_hook=received.append,
            timeout=60,
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    shown = [message for message in received if message["msg_type"] in ("display_data", "update_display_data", "error")]
    kinds = [message["msg_type"] for message in shown]
    assert kinds == ["display_data", *["update_display_data"] * (len(kinds) - 1)], received
    assert len(kinds) > 1
    first, last = shown[0]["content"], shown[-1]["content"]
    assert first["transient"]["display_id"] == last["transient"]["display_id"]
    assert "<progress" in last["data"]["text/html"]
    assert "done after" in last["data"]["text/plain"]
