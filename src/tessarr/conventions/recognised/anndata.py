"""AnnData, recognised: find the kind of element of each node.

    {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [164114, 40145]}

>>> read({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [3, 4]})
Element(type='csr_matrix', version='0.1.0')
>>> read_dataframe({"encoding-type": "dataframe", "_index": "gene", "column-order": ["length"]})
DataFrame(names='gene', columns=('length',))

`parts` finds the pieces of an AnnData object: its size, the tables of observations and variables, matrices, layers.

Source: anndata, "On-disk format". Files of anndata 0.7 lack the encoding of many nodes, which is not an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from tessarr.conventions.base import Attributes, Convention, Hierarchy, Node, Problem, children, join, numbers, parent

NAME = "anndata"

_MEMBERS: dict[str, tuple[str, ...]] = {
    "anndata": ("obs", "var"),
    "csr_matrix": ("data", "indices", "indptr"),
    "csc_matrix": ("data", "indices", "indptr"),
    "categorical": ("codes", "categories"),
    "nullable-integer": ("values", "mask"),
    "nullable-boolean": ("values", "mask"),
    "nullable-string-array": ("values", "mask"),
}
"""Members that an element must have."""
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "csr_matrix": ("shape",),
    "csc_matrix": ("shape",),
    "dataframe": ("_index", "column-order"),
    "categorical": ("ordered",),
    "awkward-array": ("form", "length"),
}
_ARRAYS = ("array", "string-array", "string", "numeric-scalar", "rec-array")
_GROUPS = (*_MEMBERS, "dataframe", "dict", "raw", "awkward-array")


class Element(NamedTuple):
    """The kind of a node."""

    type: str
    version: str


class DataFrame(NamedTuple):
    """A table: a group whose members are its columns, and the column of row names."""

    names: str
    columns: tuple[str, ...]


class Sparse(NamedTuple):
    """A compressed sparse matrix: members data, indices, indptr."""

    format: Literal["csr", "csc"]
    shape: tuple[int, int]


class Categorical(NamedTuple):
    """A column of categories: the paths of the codes (-1: missing) and of the categories."""

    codes: str
    categories: str
    ordered: bool


class Parts(NamedTuple):
    """The pieces of an AnnData object; paths are from the root of the hierarchy."""

    shape: tuple[int | None, int | None]
    """Number of observations and of variables; ``None`` where unknown."""
    x: str | None
    obs: DataFrame | None
    var: DataFrame | None
    mappings: Mapping[str, Mapping[str, str]]
    """layers, obsm, varm, obsp, varp, uns: name → path of each member."""
    raw: str | None = None


def read(attributes: Attributes) -> Element | None:
    """Read the kind of element; ``None`` when the node does not belong to AnnData."""
    kind, version = attributes.get("encoding-type"), attributes.get("encoding-version")
    return Element(kind, str(version)) if isinstance(kind, str) and kind else None


def read_dataframe(attributes: Attributes) -> DataFrame | None:
    """Read the columns of a table; ``None`` for other nodes."""
    index, columns = attributes.get("_index"), attributes.get("column-order")
    if not isinstance(index, str) or not isinstance(columns, list | tuple):
        return None
    return DataFrame(index, tuple(map(str, columns)))


def read_sparse(attributes: Attributes) -> Sparse | None:
    """Read format and shape of a sparse matrix, also of versions before 0.7; ``None`` for other nodes."""
    found = read(attributes)
    kind = found.type.removesuffix("_matrix") if found else attributes.get("h5sparse_format")
    shape = attributes.get("shape", attributes.get("h5sparse_shape"))
    if kind not in ("csr", "csc") or not (isinstance(shape, list | tuple) and len(shape) == 2):
        return None
    return Sparse("csr" if kind == "csr" else "csc", (shape[0], shape[1])) if numbers(shape, 2) else None


def categorical(path: str, hierarchy: Hierarchy) -> Categorical | None:
    """Find the arrays of a column of categories; ``None`` when the node at `path` is not such a column.

    Since 0.8 it is a group; in 0.7 an array of codes, whose attribute ``categories`` names an array of its table.
    """
    node = hierarchy[path]
    found = read(node.attributes)
    if node.kind == "group" and found is not None and found.type == "categorical":
        return Categorical(join(path, "codes"), join(path, "categories"), node.attributes.get("ordered") is True)
    named = node.attributes.get("categories")
    place = join(parent(path), named) if isinstance(named, str) else None
    if node.kind != "array" or place is None or place not in hierarchy:
        return None
    return Categorical(path, place, hierarchy[place].attributes.get("ordered") is True)


def parts(hierarchy: Hierarchy, path: str = "") -> Parts | None:
    """Find the pieces of the AnnData object at `path`; ``None`` when there is none (`is_anndata`)."""
    if not is_anndata(hierarchy, path):
        return None

    def existing(name: str) -> str | None:
        return join(path, name) if join(path, name) in hierarchy else None

    tables = [
        read_dataframe(hierarchy[place].attributes) if (place := existing(name)) is not None else None
        for name in ("obs", "var")
    ]
    mappings = {
        name: {below.rpartition("/")[2]: below for below in children(join(path, name), hierarchy)}
        for name in ("layers", "obsm", "varm", "obsp", "varp", "uns")
        if existing(name) is not None
    }
    lengths = [
        _length(join(join(path, name), table.names), hierarchy) if table is not None else None
        for name, table in zip(("obs", "var"), tables, strict=True)
    ]
    return Parts((lengths[0], lengths[1]), existing("X"), tables[0], tables[1], mappings, existing("raw"))


def _length(path: str, hierarchy: Hierarchy) -> int | None:
    """Count the rows of a column, which may be an array or a group of arrays (categories, nullable numbers)."""
    for place in (path, join(path, "codes"), join(path, "values")):
        node = hierarchy.get(place)
        if node is not None and node.kind == "array" and node.ndim == 1:
            return node.shape[0]
    return None


def _shape(path: str, hierarchy: Hierarchy) -> tuple[int, ...] | None:
    """Return the first two lengths of a matrix, dense or sparse; of a table only the number of rows."""
    node = hierarchy.get(path)
    if node is None:
        return None
    if node.kind == "array":
        return node.shape[:2]
    sparse, table = read_sparse(node.attributes), read_dataframe(node.attributes)
    if sparse is not None:
        return sparse.shape
    rows = _length(join(path, table.names), hierarchy) if table is not None else None
    return None if rows is None else (rows,)


def is_anndata(hierarchy: Hierarchy, path: str = "") -> bool:
    """Return whether the group at `path` is an AnnData object; those of anndata 0.7 are recognised by their members."""
    node = hierarchy.get(path)
    if node is None or node.kind != "group":
        return False
    found = read(node.attributes)
    if found is not None:
        return found.type == "anndata"
    return all(join(path, name) in hierarchy for name in ("obs", "var", "X"))


def _shape_mismatches(path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    """Yield a problem for each matrix whose lengths differ from the object's."""
    found = parts(hierarchy, path)
    assert found is not None
    obs, var = found.shape
    wanted: dict[str, tuple[int | None, ...]] = {"X": (obs, var)} if found.x is not None else {}
    axes: dict[str, tuple[int | None, ...]] = {
        "layers": (obs, var),
        "obsm": (obs,),
        "varm": (var,),
        "obsp": (obs, obs),
        "varp": (var, var),
    }
    for name, lengths in axes.items():
        wanted |= {f"{name}/{member}": lengths for member in found.mappings.get(name, ())}
    for name, lengths in wanted.items():
        real = _shape(join(path, name), hierarchy)
        pairs = zip(real or (), lengths, strict=False)
        if any(want is not None and have != want for have, want in pairs):
            stated = [n for n in lengths if n is not None]
            yield Problem(NAME, (), f"{name} has lengths {list(real or ())}, the object {stated}", "ANNDATA-SHAPE")


def _columns(path: str, table: DataFrame, hierarchy: Hierarchy) -> Iterator[Problem]:
    rows = _length(join(path, table.names), hierarchy)
    for name in table.columns:
        length = _length(join(path, name), hierarchy)
        if rows is not None and length is not None and length != rows:
            message = f"column {name!r} has {length} rows, the index {rows}"
            yield Problem(NAME, ("column-order",), message, "ANNDATA-SHAPE")


def _detect(node: Node) -> bool:
    """Return whether a node has an encoding with version: others use ``encoding-type`` too (SpatialData:
    ``ngff:points``).
    """
    found = read(node.attributes)
    return found is not None and (found.type in (*_ARRAYS, *_GROUPS) or "encoding-version" in node.attributes)


def _check(node: Node, path: str, hierarchy: Hierarchy) -> Iterator[Problem]:
    found = read(node.attributes)
    assert found is not None
    if "encoding-version" not in node.attributes:
        yield Problem(NAME, ("encoding-version",), "is missing", "ANNDATA-VERSION")
    if (found.type in _ARRAYS and node.kind != "array") or (found.type in _GROUPS and node.kind != "group"):
        yield Problem(
            NAME,
            ("encoding-type",),
            f"{found.type} cannot be {'an array' if node.kind == 'array' else 'a group'}",
            "ANNDATA-KIND",
        )
        return
    for name in _ATTRIBUTES.get(found.type, ()):
        if name not in node.attributes:
            yield Problem(NAME, (name,), f"is required for {found.type}", "ANNDATA-ATTRIBUTE")
    if len(hierarchy) > 1:
        members = list(_MEMBERS.get(found.type, ()))
        if found.type == "dataframe":
            columns = node.attributes.get("column-order", ())
            if not isinstance(columns, list | tuple):
                yield Problem(NAME, ("column-order",), f"must be a list of names, got {columns!r}", "ANNDATA-ATTRIBUTE")
                columns = ()
            members += [str(node.attributes.get("_index", "")), *map(str, columns)]
        for name in members:
            if name and join(path, name) not in hierarchy:
                yield Problem(NAME, ("encoding-type",), f"{found.type} has no member {name!r}", "ANNDATA-MEMBER")
        table = read_dataframe(node.attributes)
        if table is not None:
            yield from _columns(path, table, hierarchy)
        if found.type == "anndata":
            yield from _shape_mismatches(path, hierarchy)


CONVENTION = Convention(
    NAME, _detect, _check, spec_url="https://anndata.readthedocs.io/en/latest/fileformat-prose.html"
)
