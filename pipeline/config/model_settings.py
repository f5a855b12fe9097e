"""The table ``[model]``."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from fluxplain.config.base import ConfigError, Reference, Section, content, load, meant
from fluxplain.evaluate import Kind as EvaluatorKind
from fluxplain.loading.import_strings import parameters
from fluxplain.models.warm_start import unpickled

MAX_VERSION = 200
"""Longest model version, in characters."""


class ModelSettings(Section):
    """The model to explain."""

    factory: Reference | None = None
    """`module:name` of a River class, of `from_river`, `from_sklearn` or `from_torch` in
    `fluxplain.models`, or of your own function or class."""
    file: Path | None = None
    """A pickled model to start from, instead of a factory. Unpickling runs its code."""
    params: dict[str, Any] = {}
    """The factory's arguments. It also gets `seed`, `features`, `label` and `learn`, if it has
    parameters of these names."""
    learn: bool = True
    """Whether the model learns. A frozen model (`false`) predicts and is explained, but never
    learns."""
    version: Annotated[str, Field(min_length=1, max_length=MAX_VERSION)] | None = None
    """The model's version, published in every record until another model is announced."""
    directory: Path = Path(".fluxplain/models")
    """The folder of announced models, each in a regular file named by its digest. Anyone who can
    write there can run code in the workers."""
    evaluator: EvaluatorKind = "auto"
    """How to evaluate the model on perturbed inputs: `"hoeffding"` is for Hoeffding trees,
    `"mondrian"` for aggregated Mondrian forests, `"linear"` for linear models, `"naive-bayes"` for
    naive Bayes, and each also for ensembles of them; `"batch"` makes one call for all inputs,
    `"generic"` one call for each. `"auto"` takes the first of these that fits; `fluxplain check`
    shows which."""
    compiled: bool = True
    """Whether River's adaptive random forests, Hoeffding trees and Hoeffding adaptive trees, and
    bagging, boosting and random patches of such trees, run as arrays: with the same numbers, in
    less time."""
    shards: Annotated[int, Field(ge=1, le=100)] = 1
    """Replicas of the model. Each learns from every record and evaluates its share of the features.
    At most the number of features, groups and pairs."""

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        if (self.factory is None) == (self.file is None):
            both = "are both set" if self.file else "are both missing"
            raise ValueError(f"factory and file {both}: give one of them")
        if self.file is not None and self.params:
            raise ValueError("params are for a factory, but file is set: remove params")
        return self

    @property
    def origin(self) -> str:
        """The setting that names the model, for messages."""
        return f"model.factory = {self.factory!r}" if self.factory else f"model.file = {self.file}"

    def make(self, **known: Any) -> Any:
        """Return a new model, as arrays if ``compiled`` is set.

        The factory gets those of the ``known`` arguments that it has parameters for; ``params``
        override them.
        """
        return self.as_configured(self._made(known))

    def as_configured(self, model: Any) -> Any:
        """Return a model as arrays if ``compiled`` is set, otherwise the model itself."""
        if not self.compiled:
            return model
        from fluxplain.forest import as_arrays  # noqa: PLC0415  loads River

        return as_arrays(model)

    def _made(self, known: Mapping[str, Any]) -> Any:
        if self.file is not None:
            data = content(self.file, self.origin)
            try:
                return unpickled(data)
            except ValueError as error:
                raise ConfigError(f"{self.origin}: {error}") from error
        factory = load("model.factory", str(self.factory))
        taken = known.keys() & parameters(factory)
        try:
            return factory(**{**{name: known[name] for name in taken}, **self.params})
        except Exception as error:
            raise ConfigError(
                f"{self.origin}, called with model.params = {self.params}, failed: "
                f"{type(error).__name__}: {error}{self._meant(parameters(factory))}"
            ) from error

    def _meant(self, names: Collection[str]) -> str:
        """Return hints at the parameters of a factory that wrong ones may have been meant for."""
        wrong = [name for name in self.params if name not in names]
        return "".join(meant(name, names) for name in wrong) if "kwargs" not in names else ""
