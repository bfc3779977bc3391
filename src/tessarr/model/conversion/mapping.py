"""Convert a whole model to the other format (ZOM-17), without a store.

>>> from tessarr import model
>>> array = model.ArraySpecV2(shape=[4], chunks=[2], dtype="<i2", compressor=None, attributes={"a": 1})
>>> mapped = to_v3(model.GroupSpec(zarr_format=2, members={"x": array}))
>>> mapped.spec["x"].data_type, mapped.spec["x"].chunk_key_encoding["name"], mapped.notes
('int16', 'v2', ())
>>> to_v2(mapped.spec).spec["x"] == array
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tessarr.errors import MetadataValidationError, Problem, TessarrError
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.model.conversion import downgrade, upgrade
from tessarr.model.node import GroupSpec, Spec, walk
from tessarr.model.stored import own_spec
from tessarr.model.valid import NodeProblem


@dataclass(frozen=True, slots=True)
class Mapped:
    """Hold a model in another format."""

    spec: Any
    notes: tuple[NodeProblem, ...]
    """Differences from the original model; ``kind`` is "note"."""


def to_v3(spec: Spec, *, keep_array_dimensions: bool = False) -> Mapped:
    """Convert a v2 model to v3, for the same chunks under the same keys.

    Raises `MetadataValidationError` listing every blocker of every node.
    """

    def convert(array: ArrayMetadata) -> upgrade.Converted:
        return upgrade.array_to_v3(array, keep_array_dimensions=keep_array_dimensions)

    return _mapped(spec, 3, convert, upgrade.group_to_v3)


def to_v2(spec: Spec, *, rekey: bool = False) -> Mapped:
    """Convert a v3 model to v2; `rekey` as in `tessarr.model.conversion.downgrade.array_to_v2`.

    Raises `MetadataValidationError` listing every blocker of every node.
    """
    return _mapped(spec, 2, lambda array: downgrade.array_to_v2(array, rekey=rekey), downgrade.group_to_v2)


def _mapped(
    spec: Spec,
    zarr_format: int,
    convert_array: Callable[[ArrayMetadata], upgrade.Converted],
    convert_group: Callable[[Any], upgrade.Converted],
) -> Mapped:
    if spec.zarr_format == zarr_format:
        return Mapped(spec, ())
    problems: list[Problem] = []
    notes: list[NodeProblem] = []
    new: dict[str, Any] = {}
    for path, node in walk(spec):
        try:
            parsed = formats.parse_node(node.zarr_format, node.documents()).node
            converted = convert_array(parsed) if isinstance(parsed, ArrayMetadata) else convert_group(parsed)
            new[path] = own_spec(converted.metadata.documents(), zarr_format, path)
            notes += [NodeProblem(path, (), "note", note) for note in converted.notes]
        except TessarrError as error:
            found = getattr(error, "problems", None) or [Problem((), error.kind, str(error))]
            problems += [problem._replace(loc=(f"/{path}", *problem.loc)) for problem in found]
    if problems:
        raise MetadataValidationError(f"the model cannot be expressed in Zarr v{zarr_format}", problems)

    def build(path: str, node: object) -> Any:
        if not isinstance(node, GroupSpec):
            return new[path]
        members = {name: build(f"{path}/{name}" if path else name, member) for name, member in node.members.items()}
        return new[path].with_(members=members)

    return Mapped(build("", spec), tuple(notes))
