"""How trees in the same arrays vote: together in one call."""

from typing import Any

import numpy as np

from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn
from fluxplain.forest.ask import answer_forest
from fluxplain.forest.attribute import attribute_forest
from fluxplain.forest.compiled_model import CompiledModel, check
from fluxplain.forest.names import Layout
from fluxplain.forest.splits import Game
from fluxplain.forest.state import Integers

_VOTE, _ANSWER = Direct(learn.vote_forest), Direct(answer_forest)


class Voting(CompiledModel):
    """A model whose trees, ``_mains``, vote with weights."""

    _mains: Integers

    def _weights(self) -> Floats:
        """Return the weight of each tree's vote."""
        raise NotImplementedError

    def _voted(self, row: Floats, layout: Layout) -> dict[Any, float]:
        """Return the share of each class in the votes of all trees."""
        votes, order = self._arrays.scratch()
        n, status = _VOTE.call(
            self._arrays.pointer, self._mains, self._weights(), row, layout.columns, votes, order
        )
        check(status)
        labels, numbers = self._arrays.labels, votes.tolist()
        return {labels[c]: numbers[c] for c in order[:n].tolist()}

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        order = np.zeros(self._arrays.size.classes, np.int64)
        shares, status = _ANSWER.call(
            *(self._arrays.pointer, self._mains, self._weights(), rows, own),
            *(layout.columns, order),
        )
        return status, order[: shares.shape[1]].tolist(), shares

    def _attributed(self, game: Game) -> tuple[list[int], Floats] | None:
        order = np.zeros(self._arrays.size.classes, np.int64)
        shares, is_exact = attribute_forest(
            self._arrays.pointer, self._mains, self._weights(), game, order
        )
        return (order[: shares.shape[1]].tolist(), shares) if is_exact else None
