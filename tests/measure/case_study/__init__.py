"""A case study: a model that comes to rely on a field that leaks the label."""
