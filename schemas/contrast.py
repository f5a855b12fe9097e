"""How far a feature moves the outputs of two models; separates changes of data and model."""

from dataclasses import dataclass

from fluxplain.schemas.record import Typed


@dataclass(frozen=True, slots=True)
class Contrast(Typed):
    """How far a feature moves the output: of two models, on two observations.

    This is the distance of the outputs with and without the feature; labels play no part. For iPDP
    it is the importance of the ICE curve, for iSHAP the size of the Shapley value.

    Attributes
    ----------
    seq, since
        Offset of the observation, and the one after which the older model was copied.
    new, old
        How far the feature moves the output on the observation, of the current and the older model.
    new_then, old_then
        The same on an observation from before ``since``, with replacements from then.
    """

    seq: int
    since: int
    new: float
    old: float
    new_then: float
    old_then: float
