"""``fluxplain doctor``: everything that can be wrong, and what a model and its features cost."""
