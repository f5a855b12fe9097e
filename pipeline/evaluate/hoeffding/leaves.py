"""What the leaves of a forest have learned, in places of flat arrays."""

import weakref
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pipeline.evaluate.base import Label, Observation
from pipeline.evaluate.inputs import Floats, Inputs


class Place:
    """One leaf's row in the arrays.

    Attributes
    ----------
    index
        The row.
    version
        Differs as soon as the leaf has learned; None before the row is filled.
    seen
        At which observation the version was compared.
    answer
        What the leaf answers, if that does not depend on the input; else None.
    uses
        The features that the answer depends on.
    asked
        Whether the leaf is of a kind that must be asked itself.
    """

    __slots__ = ("_leaf", "answer", "asked", "index", "seen", "uses", "version")

    def __init__(self, index: int, leaf: "weakref.ref[Any]") -> None:
        self.index = index
        self.version: Hashable = None
        self.seen = 0
        self.answer: list[float] | None = None
        self.uses: Sequence[str] = ()
        self.asked = False
        self._leaf = leaf  # its callback frees the place


AnyPlace = TypeVar("AnyPlace", bound=Place)


class Leaves(ABC, Generic[AnyPlace]):
    """The leaves that were reached, as long as they live.

    What a leaf has learned is copied when it is reached and has learned since.

    Attributes
    ----------
    size
        How many places there are.
    labels
        What is answered → column of the answers: a class, or None for the number of a regressor.
    """

    def __init__(self, kind: type[AnyPlace]) -> None:
        self.labels: dict[Label | None, int] = {}
        self._kind = kind
        self._places: dict[int, AnyPlace] = {}
        self._free: list[int] = []
        self.size = 0
        self._time = 0

    def begin(self, x: Observation) -> None:  # noqa: ARG002
        """Take the next observation: leaves may have learned since the last."""
        self._time += 1

    def place(self, leaf: Any, tree: Any) -> AnyPlace:
        """Return a leaf's place, filled with what it knows now."""
        place = self._places.get(id(leaf))
        if place is None:
            place = self._new(leaf)
        if place.seen != self._time:
            place.seen = self._time
            self.refresh(place, leaf, tree)
        return place

    def refresh(self, place: AnyPlace, leaf: Any, tree: Any) -> None:
        """Fill a leaf's place anew if the leaf has learned."""
        version = self._version(leaf)
        if place.version != version:
            place.answer, place.uses, place.asked = None, (), False
            self._fill(place, leaf, tree)
            place.version = version

    def reserved(self, leaf: Any) -> AnyPlace:
        """Return a leaf's place, whatever it holds."""
        place = self._places.get(id(leaf))
        return self._new(leaf) if place is None else place

    @abstractmethod
    def ask(self, inputs: Inputs, rows: Sequence[int], places: Sequence[AnyPlace]) -> Floats:
        """Return what each place, whose answer depends on the input, answers on its row.

        Returns
        -------
        Shape (rows, at least as many as labels).

        Raises
        ------
        NoNumberError
            If a leaf needs a number and there is something else.
        """

    @abstractmethod
    def ask_itself(self, tree: Any, leaf: Any, x: Observation) -> Mapping[Any, float]:
        """Return what River answers: the leaf, or the whole tree if there is none."""

    @abstractmethod
    def _version(self, leaf: Any) -> Hashable: ...

    @abstractmethod
    def _fill(self, place: AnyPlace, leaf: Any, tree: Any) -> None: ...

    def _new(self, leaf: Any) -> AnyPlace:
        if self._free:
            index = self._free.pop()
        else:
            index, self.size = self.size, self.size + 1
        key, places, free = id(leaf), self._places, self._free

        def leave(_: object) -> None:
            free.append(places.pop(key).index)

        place = self._places[key] = self._kind(index, weakref.ref(leaf, leave))
        return place
