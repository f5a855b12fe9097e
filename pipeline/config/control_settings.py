"""The table ``[control]``."""

from fluxplain.config.base import Section


class ControlSettings(Section):
    """Commands to a running pipeline."""

    topic: bool = False
    """Whether to use the topic `control`. Its records replace a running stream's model, or change
    how many observations are explained."""
