"""What River's single trees as arrays share."""

from copy import deepcopy
from random import Random
from typing import Any, ClassVar, Self

from fluxplain.forest.compiled_model import CompiledModel
from fluxplain.forest.forms import Form
from fluxplain.forest.from_objects import learn_names
from fluxplain.forest.mersenne import Words, state_of


class Learned:
    """An attribute that says what River's tree has learned; the arrays know it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> Any:
        return self if model is None else getattr(model._as_river(), self._name)

    def __set__(self, model: Any, value: Any) -> None:
        """Ignore what River sets in a new tree."""


class CompiledTree(CompiledModel):
    """A tree as arrays: a base class beside River's ``_river_class``."""

    _form: ClassVar[Form]
    _river_class: ClassVar[Any]
    _ours = frozenset({"_made", "river", "reason"})
    """Attributes that River's tree does not have."""

    _root = Learned()
    _n_active_leaves = Learned()
    _n_inactive_leaves = Learned()
    _train_weight_seen_by_model = Learned()
    _growth_allowed = Learned()
    _active_leaf_size_estimate = Learned()
    _inactive_leaf_size_estimate = Learned()
    _size_estimate_overhead_fraction = Learned()

    @classmethod
    def from_river(cls, model: Any) -> Self:
        """Return a River model as arrays; raise ``UnsupportedError`` if they cannot hold it."""
        found = cls.__new__(cls)
        of = {name: each for name, each in vars(model).items() if not cls._is_learned(name)}
        for name, each in deepcopy(of).items():
            setattr(found, name, each)
        found._start()
        learn_names(found._arrays, [model])
        found._read(model)
        return found

    @classmethod
    def _is_learned(cls, attribute: str) -> bool:
        return isinstance(getattr(cls, attribute, None), Learned)

    def _read(self, model: Any) -> None:
        """Put what River's model has learned into the arrays, which know all names."""
        self._form.reader(self._arrays).read(0, model)

    def _start(self) -> None:
        parameters = self._parameters()
        self._made = self._form.arrays(parameters, n_trees=1, words=self._words())
        self._arrays.put_tree(0, parameters)

    def _parameters(self) -> dict[str, Any]:
        """Return what the arrays follow of the parameters."""
        return {name: getattr(self, name) for name in self._get_params()}  # type: ignore[attr-defined]

    def _words(self) -> Words:
        return state_of(Random(0))  # it draws none

    def _river_tree(self, tree: int) -> Any:  # noqa: ARG002  it has one
        return self._as_river()

    def _without_trees(self) -> Any:
        river = self._river_class()
        river.__dict__.update({n: each for n, each in vars(self).items() if n not in self._ours})
        return river

    def _with_trees(self, river: Any) -> Any:
        if self._made is not None:
            self._form.writer(self._arrays, river).write(0)
        return river
