"""Checkpoints: the state of one stage for one partition, with the offset to resume from."""
