"""What a leaf sees of a feature: River's search trees of numbers, and its lists of categories."""

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.places import POINTS, give_back, take
from fluxplain.forest.regression import moments
from fluxplain.forest.state import Integers, Points, State


@compiled
def new_point(state: State, value: float, y: float, w: float) -> int:
    """Return a point that has seen one target."""
    points = state.points
    point = take(state.free.n, POINTS, state.free.points)
    points.value[point], points.left[point], points.right[point] = value, -1, -1
    moments.clear(points.moments[point])
    moments.see(points.moments[point], y, w)
    return point


@compiled
def see_number(state: State, leaf: int, place: int, value: float, y: float, w: float) -> None:
    """Put a target in the search tree of a feature, at its value.

    References
    ----------
    Ikonomovska et al. (2011), Learning model trees from evolving data streams.
    """
    points, last, is_left = state.points, -1, False
    point = state.observers.point[leaf, place]
    while point >= 0:
        last, is_left = point, value < points.value[point]
        is_here = value == points.value[point]
        if is_here or is_left:
            moments.see(points.moments[point], y, w)
        if is_here:
            return
        point = points.left[point] if is_left else points.right[point]
    new = new_point(state, value, y, w)
    if last < 0:
        state.observers.point[leaf, place] = new
    elif is_left:
        points.left[last] = new
    else:
        points.right[last] = new


@compiled
def see_category(state: State, leaf: int, place: int, value: float, y: float, w: float) -> None:
    """Put a target in the list of a feature's categories."""
    points, last, point = state.points, -1, state.observers.point[leaf, place]
    while point >= 0 and points.value[point] != value:
        last, point = point, points.right[point]
    if point >= 0:
        moments.see(points.moments[point], y, w)
    elif last < 0:
        state.observers.point[leaf, place] = new_point(state, value, y, w)
    else:
        points.right[last] = new_point(state, value, y, w)


@compiled
def enlarged(stack: Integers, n: int) -> Integers:
    """Return a stack with room for another row above ``n``."""
    if n < len(stack):
        return stack
    larger = np.empty((2 * n, stack.shape[1]), np.int64)
    larger[:n] = stack
    return larger


@compiled
def divide(whole: Floats, below: Floats, above: Floats, two: float, sides: Floats) -> None:
    """Fill in the moments of both sides of a point, shape (2, 3).

    ``below`` are the moments of the point and of what is on its left in its search tree, ``above``
    those of smaller values elsewhere.
    """
    moments.copy(below, sides[0])
    moments.add(sides[0], above, two)
    moments.copy(whole, sides[1])
    moments.subtract(sides[1], sides[0], two)


@compiled
def push_left(points: Points, point: int, stack: Integers, n: int) -> tuple[Integers, int]:
    """Push a point and all on its left; return the stack and how many points are on it."""
    while point >= 0:
        stack = enlarged(stack, n)
        stack[n, 0], stack[n, 1] = point, 0
        point = points.left[point]
        n += 1
    return stack, n


@compiled
def search_numbers(
    points: Points, first: int, whole: Floats, least: float, two: float, best: Floats
) -> tuple[float, float]:
    """Return the best merit of a threshold, and it; fill in the moments of both sides, (2, 3).

    The merit is -inf if there is no point. Points come sorted; what is on the stack with a 1 has
    been added to the smaller values, and its right side is done.
    """
    merit, value, above, sides = -np.inf, 0.0, np.zeros(3), np.empty((2, 3))
    stack, n = push_left(points, first, np.empty((64, 2), np.int64), 0)
    while n > 0:
        n -= 1
        point, is_done = stack[n]
        if is_done:
            moments.subtract(above, points.moments[point], two)
            continue
        divide(whole, points.moments[point], above, two, sides)
        judged = moments.reduction(whole, sides, least)
        if judged > merit:
            merit, value = judged, points.value[point]
            best[:] = sides
        if points.right[point] >= 0:
            moments.add(above, points.moments[point], two)
            stack[n, 1] = 1
            stack, n = push_left(points, points.right[point], stack, n + 1)
    return merit, value


@compiled
def is_bad(
    points: Points,
    point: int,
    above: Floats,
    whole: Floats,
    least: float,
    two: float,
    merit: float,
    worst: float,
) -> bool:
    """Return whether a threshold's merit is too small a share of the best one."""
    sides = np.empty((2, 3))
    divide(whole, points.moments[point], above, two, sides)
    return bool(moments.reduction(whole, sides, least) / merit < worst)


PARENT, SIDE, PHASE = 1, 2, 3
"""Columns of the stack of :func:`remove_bad`; the first one is the point."""


@compiled
def push(stack: Integers, n: int, point: int, parent: int, side: int) -> None:
    """Push a point that has not been looked at."""
    stack[n, 0], stack[n, PARENT], stack[n, SIDE], stack[n, PHASE] = point, parent, side, 0


@compiled
def remove_bad(
    state: State, leaf: int, place: int, whole: Floats, merit: float, worst: float
) -> None:
    """Remove points without good ones below them, whose share of ``merit`` is below ``worst``.

    A point's phase is 0 before its left side, 1 before its right side, then 2; 3 if it has been
    added to the smaller values meanwhile.
    """
    points, two, least = state.points, state.settings.two, state.settings.least
    above, n, was_bad = np.zeros(3), 1, True
    stack = np.empty((64, 4), np.int64)
    push(stack, 0, state.observers.point[leaf, place], -1, 0)
    while n > 0:
        point, parent, side, phase = stack[n - 1]
        if phase < 2:
            if phase == 1 and not was_bad:
                n -= 1
                continue
            below = points.left[point] if phase == 0 else points.right[point]
            stack[n - 1, PHASE], was_bad = phase + 1, True
            if below >= 0:
                if phase == 1:
                    moments.add(above, points.moments[point], two)
                    stack[n - 1, PHASE] = 3
                stack = enlarged(stack, n)
                push(stack, n, below, point, phase)
                n += 1
            continue
        if phase == 3:
            moments.subtract(above, points.moments[point], two)
        n -= 1
        was_bad = was_bad and is_bad(points, point, above, whole, least, two, merit, worst)
        if was_bad:
            remove(state, leaf, place, point, parent, side)


@compiled
def remove(state: State, leaf: int, place: int, point: int, parent: int, side: int) -> None:
    """Remove a point without any below it; ``side`` is 1 on the right of its parent."""
    if parent < 0:
        state.observers.point[leaf, place] = -1
    elif side == 0:
        state.points.left[parent] = -1
    else:
        state.points.right[parent] = -1
    give_back(state.free.n, POINTS, state.free.points, point)
