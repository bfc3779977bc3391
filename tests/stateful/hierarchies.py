"""Random programs on one hierarchy, beside a dictionary of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import tessarr
import tessarr.model
from tessarr.errors import ContainsArrayError, ContainsGroupError, NodeNotFoundError
from tests.stateful.places import OF_NODES, formats, make_store, reopened

NAMES = ["a", "b", "c", "ä b"]
DEEPEST = 3


class Node:
    """A node of the model: a group where it has no values."""

    def __init__(self, values: Any = None) -> None:
        self.values = values
        self.attributes: dict[str, Any] = {}

    def copy(self) -> Node:
        made = Node(None if self.values is None else self.values.copy())
        made.attributes = dict(self.attributes)
        return made


class HierarchyProgram:
    """A hierarchy, its model (nodes by path), and the steps of a program."""

    def __init__(self, rng: Random, folder: Path) -> None:
        self.rng = rng
        self.store = make_store(rng, folder, [*OF_NODES, "zarr-python over fsspec"])
        self.format: Any = rng.choice(formats(self.store))
        self.root = tessarr.create_group(self.store, zarr_format=self.format)
        self.model = {"": Node()}
        self.steps: list[Callable[[], None]] = [
            *[self.create_group, self.create_array] * 2,
            *[
                self.require_group,
                self.change_attributes,
                self.write,
                self.delete,
                self.move,
                self.replace,
                self.copy_by_model,
            ],
            *[self.consolidate, self.reopen, self.list_members, self.look],
        ]

    def _path(self) -> str:
        """A path; more often one that is there."""
        if len(self.model) > 1 and self.rng.random() < 0.5:
            return self.rng.choice(sorted(self.model.keys() - {""}))
        return "/".join(self.rng.choice(NAMES) for _ in range(self.rng.randint(1, DEEPEST)))

    def _above(self, path: str) -> list[str]:
        parts = path.split("/")
        return ["/".join(parts[:length]) for length in range(1, len(parts))]

    def _below_array(self, path: str) -> bool:
        return any(self._is_array(above) for above in self._above(path))

    def _is_array(self, path: str) -> bool:
        return path in self.model and self.model[path].values is not None

    def _add(self, path: str, node: Node) -> None:
        for above in self._above(path):
            self.model.setdefault(above, Node())
        self.model[path] = node

    def _subtree(self, path: str) -> list[str]:
        return [found for found in self.model if found == path or found.startswith(f"{path}/")]

    def _values(self) -> Any:
        length, dtype = self.rng.randint(1, 6), self.rng.choice(["i4", "f8", "u1"])
        values = np.arange(length, dtype=dtype) + self.rng.randint(0, 3)
        return values if self.rng.random() < 0.7 else values[:, None] + np.arange(3, dtype=dtype)

    def create_group(self) -> None:
        path = self._path()
        if path in self.model or self._below_array(path):
            self._refused(lambda: self.root.create_group(path))
        else:
            self.root.create_group(path)
            self._add(path, Node())

    def create_array(self) -> None:
        path, values = self._path(), self._values()
        if path in self.model or self._below_array(path):
            self._refused(lambda: self.root.create_array(path, data=values, chunks=2))
        else:
            self.root.create_array(path, data=values, chunks=2)
            self._add(path, Node(values))

    def _refused(self, make: Callable[[], Any]) -> None:
        try:
            make()
        except (ContainsArrayError, ContainsGroupError):
            return
        raise AssertionError("a node was made where there is one, or below an array")

    def require_group(self) -> None:
        path = self._path()
        if self._is_array(path) or self._below_array(path):
            self._refused(lambda: self.root.require_group(path))
        else:
            found = self.root.require_group(path)
            if path not in self.model:
                self._add(path, Node())
            assert dict(found.attrs) == self.model[path].attributes, f"attributes of {path}"

    def replace(self) -> None:
        path, values = self._path(), self._values()
        if self._below_array(path):
            return
        for gone in self._subtree(path):
            del self.model[gone]
        if self.rng.random() < 0.5:
            self.root.create_array(path, data=values, chunks=2, overwrite=True)
            self._add(path, Node(values))
        else:
            self.root.create_group(path, overwrite=True)
            self._add(path, Node())

    def change_attributes(self) -> None:
        path = self.rng.choice(sorted(self.model))
        name, value = self.rng.choice("xyz"), self.rng.choice([None, 1, "ä", [1, {"b": 2}]])
        node = self.root[path] if path else self.root
        if self.rng.random() < 0.2:
            node.attrs.pop(name, None)
            self.model[path].attributes.pop(name, None)
        else:
            node.attrs[name] = value
            self.model[path].attributes[name] = value
        self.root.refresh()  # a group opened by consolidated metadata has those of before

    def write(self) -> None:
        arrays = [path for path, node in self.model.items() if node.values is not None]
        if arrays:
            path = self.rng.choice(sorted(arrays))
            at = self.rng.randrange(len(self.model[path].values))
            self.root.get_array(path)[at] = 9
            self.model[path].values[at] = 9

    def delete(self) -> None:
        path = self._path()
        if path not in self.model:
            try:
                del self.root[path]
            except KeyError:
                return
            raise AssertionError(f"{path} was deleted, which does not exist")
        if self.rng.random() < 0.5:
            del self.root[path]
            for gone in self._subtree(path):
                del self.model[gone]

    def move(self) -> None:
        source, dest = self._path(), self._path()
        allowed = (
            source in self.model
            and dest not in self.model
            and not f"{dest}/".startswith(f"{source}/")
            and not self._below_array(dest)
        )
        if allowed:
            self.root.move(source, dest)
            moved = {dest + path[len(source) :]: self.model.pop(path) for path in self._subtree(source)}
            for path, node in moved.items():
                self._add(path, node)

    def copy_by_model(self) -> None:
        """Store the model of a part of the hierarchy at another path: structure and attributes, values of fill value."""
        groups = [path for path, node in self.model.items() if path and node.values is None]
        dest = self._path()
        if not groups or dest in self.model or self._below_array(dest):
            return
        source = self.rng.choice(sorted(groups))
        if f"{dest}/".startswith(f"{source}/"):
            return
        tessarr.model.from_store(self.store, path=source).to_store(self.store, path=dest)
        self.root.refresh()  # likewise
        for path in self._subtree(source):
            node = self.model[path].copy()
            if node.values is not None:
                node.values = np.zeros_like(node.values)
            self._add(dest + path[len(source) :], node)

    def consolidate(self) -> None:
        if not self.store.supports_consolidated_metadata:
            return
        tessarr.consolidate_metadata(self.store, zarr_format=self.format)
        if self.rng.random() < 0.5:
            self.root = tessarr.open_consolidated(self.store, mode="r+")

    def reopen(self) -> None:
        self.store = reopened(self.store)
        self.root = tessarr.open_group(self.store, mode=self.rng.choice(["r+", "a"]))
        self.finish()

    def look(self) -> None:
        path = self._path()
        assert (path in self.root) is (path in self.model), f"{path} in the group"
        if path not in self.model:
            try:
                self.root[path]
            except (KeyError, NodeNotFoundError):
                return
            raise AssertionError(f"{path} was opened, which does not exist")
        self._compare(path, self.root[path])

    def _compare(self, path: str, found: Any) -> None:
        node = self.model[path]
        assert dict(found.attrs) == node.attributes, (
            f"attributes of /{path}: {dict(found.attrs)} instead of {node.attributes}"
        )
        if node.values is None:
            assert isinstance(found, tessarr.Group), f"/{path} is {found}"
        else:
            assert found.dtype == node.values.dtype, f"/{path} is {found}"
            assert found[...].tolist() == node.values.tolist(), (
                f"/{path}: {found[...].tolist()} instead of {node.values.tolist()}"
            )

    def list_members(self) -> None:
        depth = self.rng.choice([0, 1, None])
        found = {path for path, _ in self.root.members(max_depth=depth)}
        expected = {path for path in self.model if path and (depth is None or path.count("/") <= depth)}
        assert found == expected, f"members down to {depth}: {sorted(found)} instead of {sorted(expected)}"

    def finish(self) -> None:
        """Compare all nodes, by the documents and by the consolidated metadata where there are some."""
        for root in (
            tessarr.open_group(self.store, mode="r", use_consolidated=False),
            tessarr.open_group(self.store, mode="r"),
        ):
            found = dict(root.members(max_depth=None))
            assert found.keys() == self.model.keys() - {""}, f"members {sorted(found)} instead of {sorted(self.model)}"
            for path, node in [("", root), *found.items()]:
                self._compare(path, node)
