"""The settings."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest

from tessarr.errors import UnsupportedOperationError
from tessarr.settings import DEFAULTS, Config
from tessarr.settings import config as process_config


@pytest.fixture
def config() -> Config:
    """Settings of their own, without an environment."""
    return Config(DEFAULTS, {})


def test_defaults_are_zarr_pythons_names(config: Config) -> None:
    assert config.get("default_zarr_format") == 3
    assert config.get("array.write_empty_chunks") is False
    assert config.get("array.read_missing_chunks") is True
    assert config.get("array.target_shard_size_bytes") is None
    assert config.get("async.concurrency") == 256  # 10 there, and not adaptive
    assert config.get("async.timeout") is None
    assert config.get("threading.max_workers") is None
    assert config.get("json_indent") == 2
    assert config.get("engine") == "auto"
    assert config.defaults == [DEFAULTS]


def test_a_call_sets_for_good(config: Config) -> None:
    config.set({"array.order": "F", "json_indent": None})
    assert (config.get("array.order"), config.get("json_indent")) == ("F", None)
    config.reset()
    assert (config.get("array.order"), config.get("json_indent")) == ("C", 2)


def test_a_with_block_restores(config: Config) -> None:
    with config.set({"array.order": "F"}) as inside:
        assert inside.get("array.order") == "F"
        with config.set(array__order="C", json_indent=4):
            assert (config.get("array.order"), config.get("json_indent")) == ("C", 4)
        assert (config.get("array.order"), config.get("json_indent")) == ("F", 2)
    assert config.get("array.order") == "C"


def test_a_with_block_restores_what_an_error_left(config: Config) -> None:
    with pytest.raises(ZeroDivisionError), config.set({"codecs.mine": "x"}):
        1 / 0  # noqa: B018
    assert config.get("codecs.mine", None) is None


def test_restoring_leaves_what_was_set_meanwhile(config: Config) -> None:
    with config.set({"array.order": "F"}):
        config.set({"array.write_empty_chunks": True})
    assert config.get("array.write_empty_chunks") is True
    assert config.get("array.order") == "C"


def test_dictionaries_are_merged_into_branches(config: Config) -> None:
    config.set({"array": {"order": "F"}})
    assert config.get("array.order") == "F"
    assert config.get("array.write_empty_chunks") is False


def test_a_branch_is_given_as_a_copy(config: Config) -> None:
    config.get("array")["order"] = "F"
    assert config.get("array.order") == "C"


def test_hyphens_are_underscores(config: Config) -> None:
    config.set({"codecs.vlen-utf8": "a"})
    config.set({"codecs.vlen_utf8": "b"})
    assert config.get("codecs") == {"vlen-utf8": "b"}


@pytest.mark.parametrize("name", ["aray.order", "defalt_zarr_format", "engin"])
def test_an_unknown_name_is_refused_with_near_ones(config: Config, name: str) -> None:
    with pytest.raises(KeyError, match="did you mean"):
        config.set({name: 1})
    with pytest.raises(KeyError, match="did you mean"):
        config.get(name)
    assert config.get(name, "mine") == "mine"


def test_nothing_is_set_when_one_name_is_unknown(config: Config) -> None:
    with pytest.raises(KeyError):
        config.set({"json_indent": 7, "nonsense": 1})
    assert config.get("json_indent") == 2


@pytest.mark.parametrize(
    ("environ", "name", "value"),
    [
        ({"TESSARR_ARRAY__ORDER": "F"}, "array.order", "F"),
        ({"ZARR_ARRAY__ORDER": "F"}, "array.order", "F"),
        ({"ZARR_ARRAY__ORDER": "F", "TESSARR_ARRAY__ORDER": "C"}, "array.order", "C"),
        ({"ZARR_ARRAY__WRITE_EMPTY_CHUNKS": "True"}, "array.write_empty_chunks", True),
        ({"ZARR_ARRAY__WRITE_EMPTY_CHUNKS": "true"}, "array.write_empty_chunks", True),
        ({"ZARR_ASYNC__CONCURRENCY": "64"}, "async.concurrency", 64),
        ({"ZARR_ASYNC__TIMEOUT": "1.5"}, "async.timeout", 1.5),
        ({"TESSARR_JSON_INDENT": "None"}, "json_indent", None),
        ({"TESSARR_ENGINE": "reference"}, "engine", "reference"),
        ({"TESSARR_OTHER_PROGRAM": "1", "ZARRX": "2"}, "engine", "auto"),
    ],
)
def test_the_environment_is_read(environ: dict[str, str], name: str, value: Any) -> None:
    found = Config(DEFAULTS, environ).get(name)
    assert found == value
    assert type(found) is type(value)


def test_reset_keeps_the_environment() -> None:
    config = Config(DEFAULTS, {"TESSARR_JSON_INDENT": "4"})
    config.set(json_indent=8)
    config.reset()
    assert config.get("json_indent") == 4


def test_there_is_no_gpu(config: Config) -> None:
    with pytest.raises(UnsupportedOperationError, match="NumPy arrays"):
        config.enable_gpu()


def test_threads_do_not_lose_each_others_settings(config: Config) -> None:
    def work(name: str) -> None:
        for i in range(200):
            config.set({f"codecs.{name}": i})

    threads = [Thread(target=work, args=(f"n{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert config.get("codecs") == {f"n{i}": 199 for i in range(4)}


def test_the_process_has_one() -> None:
    assert process_config.get("default_zarr_format") in (2, 3)
