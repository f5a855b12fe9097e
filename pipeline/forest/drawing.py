"""A compiled model that draws random numbers, as River's model would."""

from random import Random

from fluxplain.forest.compiled_model import CompiledModel
from fluxplain.forest.mersenne import put_state


class DrawingModel(CompiledModel):
    """A :class:`CompiledModel` whose generator is continued in the arrays."""

    _own_rng: Random

    @property
    def _rng(self) -> Random:
        if self.river is not None:
            return self.river._rng  # type: ignore[no-any-return]
        if self._made is not None:
            put_state(self._own_rng, self._made.words)
        return self._own_rng

    @_rng.setter
    def _rng(self, rng: Random) -> None:
        self._own_rng = rng
