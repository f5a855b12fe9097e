"""What the explainers ask a model about: the choice of inputs, and what replaces a feature."""
