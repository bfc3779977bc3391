"""Expand the template language of reference files: ``{{name}}``, ``{{name(argument='text')}}``, integer arithmetic.

kerchunk expands templates with Jinja, which can execute code. Here an expression is parsed, and refused unless it has only
names, numbers and ``+ - * // %``.

>>> fill("{{u}}/{{i * 10 + 1}}", {"u": "s3://b", "i": 4})
's3://b/41'

Source: https://fsspec.github.io/kerchunk/spec.html (version 1).
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from tessarr.errors import StoreError, TessarrError
from tessarr.types import JSON

_EXPRESSION = re.compile(r"\{\{(.*?)\}\}")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_MAX_REFERENCES = 10_000_000
"""The most references that a document may generate; more is an error, because it is a mistake or an attack."""


def expand_references(document: Mapping[str, JSON]) -> dict[str, JSON]:
    """Expand all templates of `document`, of version 0 or 1; return the map of keys to references.

    Raises `StoreError` for a document that is not a map of references.
    """
    try:
        return _expand_all(document)
    except TessarrError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise StoreError("a malformed document of references", got=f"{type(error).__name__}: {error}") from error


def _expand_all(document: Mapping[str, Any]) -> dict[str, Any]:
    if "refs" not in document:
        return {key: value for key, value in document.items() if key != "version"}
    if document.get("version", 1) != 1:
        raise StoreError("references of an unknown version", expected=1, got=document.get("version"))
    names: dict[str, Any] = dict(document.get("templates") or {})
    refs = {key: _expand(value, names) for key, value in document["refs"].items()}
    for rule in document.get("gen") or ():
        refs.update(_generate(rule, names, _MAX_REFERENCES - len(refs)))
    return refs


def _expand(value: object, names: Mapping[str, object]) -> object:
    if isinstance(value, list) and value and isinstance(value[0], str) and "{{" in value[0]:
        return [fill(value[0], names), *value[1:]]
    if isinstance(value, str) and value.startswith("{{") and not value.startswith("base64:"):
        return fill(value, names)
    return value


def _generate(rule: Mapping[str, Any], names: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Generate the references of one ``gen`` rule: one for each element of the product of its dimensions."""
    dimensions: list[list[int]] = []
    count = 1
    for given in rule["dimensions"].values():
        if isinstance(given, Mapping):
            numbers = range(int(given.get("start", 0)), int(given["stop"]), int(given.get("step", 1)))
        else:
            numbers = given
        count *= len(numbers)
        if count > most:
            raise StoreError("the references generate too many keys", expected=f"at most {_MAX_REFERENCES}", got=count)
        dimensions.append([*map(int, numbers)])
    references = {}
    for values in itertools.product(*dimensions):
        values_by_name = {**names, **dict(zip(rule["dimensions"], values, strict=True))}
        reference: list[Any] = [fill(rule["url"], values_by_name)]
        if "offset" in rule:
            reference += [
                int(fill(str(rule["offset"]), values_by_name)),
                int(fill(str(rule["length"]), values_by_name)),
            ]
        references[fill(rule["key"], values_by_name)] = reference
    return references


def fill(text: str, names: Mapping[str, object]) -> str:
    """Replace every ``{{expression}}`` in `text` by its value."""
    return _EXPRESSION.sub(lambda found: str(_value_of(found[1].strip(), names)), text)


def _value_of(expression: str, names: Mapping[str, Any]) -> object:
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise StoreError("a template cannot be parsed", got=expression) from error
    return _evaluate(tree, names, expression)


def _evaluate(node: ast.expr, names: Mapping[str, JSON], expression: str) -> object:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | str):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        value = names[node.id]
        return fill(value, names) if isinstance(value, str) and "{{" in value and node.id not in value else value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = (_evaluate(side, names, expression) for side in (node.left, node.right))
        if isinstance(left, int) and isinstance(right, int):
            if right == 0 and isinstance(node.op, ast.FloorDiv | ast.Mod):
                raise StoreError("a template divides by zero", got=expression)
            return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args and node.func.id in names:
        given = {item.arg: _evaluate(item.value, names, expression) for item in node.keywords if item.arg}
        return fill(str(names[node.func.id]), {**names, **given})
    raise StoreError(
        "a template uses something that is not defined or not allowed",
        expected="names, integers, + - * // %, template(argument='text')",
        got=expression,
    )
