"""fluxplain: explanations of an online model, kept up to date beside it."""

__version__ = "0.1.0"
