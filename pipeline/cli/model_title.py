"""Names a model for commands."""

from typing import Any

from fluxplain.config import Config
from fluxplain.models.scores import title


def model_title(config: Config, model: Any) -> str:
    """Return a model's name, and whether it runs as arrays or never learns."""
    from fluxplain.forest.conversion import is_of_arrays  # noqa: PLC0415  loads River

    frozen = "" if config.model.learn else ", frozen: it never learns"
    arrays = ", as fluxplain.forest's arrays" if is_of_arrays(model) else ""
    return f"{title(model)}{arrays}{frozen}"
