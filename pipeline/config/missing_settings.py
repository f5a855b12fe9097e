"""The table ``[missing]``."""

from typing import Literal

from fluxplain.config.base import Name, Section

MissingPolicy = Literal["dead-letter", "skip", "impute"]


class MissingSettings(Section):
    """What to do with a feature without a value: absent, or null."""

    policy: MissingPolicy = "dead-letter"
    """The policy of all features: send the observation to dead-letters (`"dead-letter"`), skip it
    (`"skip"`), or fill in a value (`"impute"`)."""
    features: dict[Name, MissingPolicy] = {}
    """Feature → its own policy."""
    values: dict[Name, bool | int | float | str] = {}
    """Feature → the value to fill in. By default the mean of a numeric feature, smoothed like the
    explanations, and the most frequent of the last 100 values of a categorical one."""

    def of(self, feature: str) -> MissingPolicy:
        """Return a feature's policy."""
        return self.features.get(feature, self.policy)
