"""What several trees answer on the perturbed inputs of one observation."""

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from pipeline.evaluate.base import Observation
from pipeline.evaluate.generic import GenericEvaluator
from pipeline.evaluate.hoeffding.leaves import Leaves, Place
from pipeline.evaluate.hoeffding.routing import route
from pipeline.evaluate.inputs import Floats, Inputs


class TreeEvaluator:
    """What the evaluators of tree classifiers and of tree regressors share.

    What is copied from the leaves is no state: it is copied again when it is needed.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._one_by_one = GenericEvaluator(model)

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"])  # type: ignore[misc]


def covers(model: object, known: Container[type], trees: Container[type]) -> bool:
    """Return whether a model's class is known, and the class of the trees that it keeps."""
    base = getattr(model, "model", None)  # of which bagging and boosting keep copies
    return type(model) in known and (base is None or type(base) in trees)


Answer = tuple[int, list[int], Sequence[float]]
"""Tree, rows, and the answer on them."""


def answers(trees: Sequence[Any], leaves: Leaves[Any], inputs: Inputs) -> Floats:
    """Return what each tree's leaf answers on each input.

    Returns
    -------
    Shape (trees, inputs + 1, labels): the last row is that of the observation itself, and labels
    have the columns of ``leaves.labels``.
    """
    itself = inputs.rows
    throughout: list[tuple[int, Sequence[float]]] = []
    fixed: list[Answer] = []
    rows: list[int] = []
    owners: list[int] = []
    places: list[Place] = []
    starts: list[int] = []  # where the observation itself is among the rows, of some trees

    def add(t: int, leaf: Any, place: Place | None, reached: list[int]) -> None:
        if place is None or place.asked:
            for row in reached:
                fixed.append((t, [row], _asked(trees[t], leaf, leaves, inputs.input(row))))
        elif place.answer is not None:
            fixed.append((t, reached, place.answer))
        else:
            rows.extend(reached)
            owners.extend([t] * len(reached))
            places.extend([place] * len(reached))

    leaves.begin(inputs.x)
    for t, tree in enumerate(trees):
        if tree._root is None:
            continue
        routes = route(tree._root, inputs)
        leaf, stayed = routes.leaf, routes.stayed
        place = None if leaf is None else leaves.place(leaf, tree)
        if place is None or place.asked:
            add(t, leaf, place, [itself, *(row for kept in stayed.values() for _, row in kept)])
        elif place.answer is not None:
            throughout.append((t, place.answer))
        else:
            starts.append(len(rows))
            changed = [row for f in place.uses for _, row in stayed.get(f, ())]
            add(t, leaf, place, [itself, *changed])
        for other, reached in routes.strayed:
            add(t, other, None if other is None else leaves.place(other, tree), reached)

    given = np.zeros((len(trees), inputs.rows + 1, len(leaves.labels)))
    for t, answer in throughout:
        given[t, :, : len(answer)] = answer
    if rows:
        asked = leaves.ask(inputs, rows, places)[:, : len(leaves.labels)]
        owner = np.array(owners)
        given[owner[starts]] = asked[starts][:, None, :]
        given[owner, rows] = asked
    for t, reached, answer in fixed:
        given[t, reached, : len(answer)] = answer
    given[:, inputs.same] = given[:, itself : itself + 1]
    return given


def _asked(tree: Any, leaf: Any, leaves: Leaves[Any], x: Observation) -> list[float]:
    """Return what River answers on one input, in the columns of the labels."""
    given, labels = leaves.ask_itself(tree, leaf, x), leaves.labels
    answer = [0.0] * (len(labels) + len(given))
    for label, share in given.items():
        answer[labels.setdefault(label, len(labels))] = share
    return answer[: len(labels)]
