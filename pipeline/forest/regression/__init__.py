"""River's regression trees as arrays: statistics of targets, search trees, and linear models."""
