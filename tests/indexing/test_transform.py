"""Index transforms: any chain of selections, transpositions and new axes selects what NumPy arrays indexed in turn hold."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr.errors import ArrayIndexError, BoundsCheckError
from tessarr.indexing.request import getitem, orthogonal, vindex
from tessarr.indexing.selection import Outer
from tessarr.indexing.transform import Affine, Fixed, IndexTransform, Indices
from tessarr.types import AnyArray


def item(length: int, numbers: random.Random) -> Any:
    """Any index for an axis of `length`; a mask, or index arrays of one or two dimensions, among them."""
    kind = numbers.randrange(7)
    if length and kind == 0:
        return numbers.randrange(-length, length)
    if length and kind == 1:
        return [numbers.randrange(-length, length) for _ in range(numbers.randint(1, 4))]
    if kind == 2:
        return np.array([numbers.random() < 0.5 for _ in range(length)], bool)
    if length and kind == 3:
        return np.array([[numbers.randrange(-length, length) for _ in range(2)] for _ in range(numbers.randint(1, 2))])
    bounds = [numbers.choice([None, numbers.randint(-length - 1, length + 1)]) for _ in range(2)]
    return slice(bounds[0], bounds[1], numbers.choice([None, 1, 2, 3, -1, -2]))


def any_index(array: AnyArray, numbers: random.Random) -> tuple[Any, ...]:
    """Any index for `array`: fewer items than axes, an Ellipsis and new axes included."""
    index = [item(length, numbers) for length in array.shape]
    first = numbers.randint(0, len(index))
    if numbers.random() < 0.3:
        index[first : numbers.randint(first, len(index))] = [Ellipsis]
    elif numbers.random() < 0.5:
        del index[first:]
    for _ in range(numbers.choice([0, 0, 1, 2]) if array.ndim < 5 else 0):
        index.insert(numbers.randint(0, len(index)), None)
    return tuple(index)


def selected(array: AnyArray, index: tuple[Any, ...]) -> AnyArray:
    """What `index` means: with new axes as in NumPy, else as for arrays."""
    if any(one is None for one in index):
        return np.asarray(array[index])
    request = getitem(index, array.shape)
    return np.asarray(request.result(array[request.selection.index]))


@given(seed=st.integers(0, 2**32))
def test_a_chain_of_views_selects_what_numpy_holds_after_each_step(seed: int) -> None:
    numbers = random.Random(seed)
    shape = tuple(numbers.randint(0 if numbers.random() < 0.1 else 1, 6) for _ in range(numbers.randint(1, 4)))
    array = now = np.arange(int(np.prod(shape))).reshape(shape)
    transform = IndexTransform.identity(shape)
    for _ in range(numbers.randint(1, 4)):
        if numbers.random() < 0.2:
            order = numbers.sample(range(now.ndim), now.ndim)
            transform, now = transform.transpose(order), now.transpose(order)
            continue
        index = any_index(now, numbers)
        try:
            found = selected(now, index)
        except IndexError:
            with pytest.raises(ArrayIndexError):
                transform.select(index)
            continue
        transform, now = transform.select(index), found
        if now.ndim > 6 or now.size > 5000:
            break
    request = transform.as_request(shape)
    assert request.shape == transform.shape == now.shape
    assert np.array_equal(request.result(array[request.selection.index]), now)


def test_basic_indices_stay_slices_and_index_arrays_of_single_axes_an_outer_product() -> None:
    """Nothing grows with the size of the array: what engines get of a view of 10¹² elements has no index array for slices."""
    view = IndexTransform.identity((10**6, 10**6)).select((slice(None, None, -3), slice(5, None))).transpose((1, 0))
    assert view.maps == (Affine(1, 999_999, -3), Affine(0, 5, 1))
    some = view.request(lambda shape: orthogonal((slice(None), [7, 3]), shape))
    assert [type(one) for one in some.maps] == [Indices, Affine]
    selection = some.as_request((10**6, 10**6)).selection
    assert isinstance(selection, Outer)
    first, second = selection.dims
    assert np.asarray(first).tolist() == [999_978, 999_990]
    assert second == slice(5, 10**6, 1)
    assert some.select((0, 0)).maps == (Fixed(999_978), Fixed(5))


def test_points_of_a_view_are_points_of_the_array() -> None:
    array = np.arange(60).reshape(3, 4, 5)
    view = IndexTransform.identity(array.shape).transpose((2, 0, 1)).select((slice(None, None, -1), [0, 2]))
    points = view.request(lambda shape: vindex(([0, 4], [1, 0], [3, 2]), shape))
    request = points.as_request(array.shape)
    assert array.transpose(2, 0, 1)[::-1, [0, 2]][[0, 4], [1, 0], [3, 2]].tolist() == (
        request.result(array[request.selection.index]).tolist()
    )


def test_an_array_that_became_shorter_than_its_view_is_refused() -> None:
    view = IndexTransform.identity((4, 6)).select((slice(2, None), 1))
    assert view.as_request((9, 6)).shape == (2,)
    with pytest.raises(BoundsCheckError, match="needs position 3 of axis 0, which has length 3 now"):
        view.as_request((3, 6))
    assert view.select(slice(0, 0)).as_request((1, 1)).shape == (0,)


def test_the_element_of_an_array_without_axes_is_not_repeated() -> None:
    view = IndexTransform.identity(()).select(None)
    assert view.as_request(()).shape == (1,)
    with pytest.raises(ArrayIndexError, match="0-d array"):
        view.select([0, 0]).as_request(())


@pytest.mark.parametrize("order", [(0,), (0, 0), (0, 2), (0, 1, 2)])
def test_an_order_that_is_no_permutation_is_refused(order: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="permutation of the 2 axes"):
        IndexTransform.identity((2, 3)).transpose(order)
