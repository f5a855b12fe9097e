"""What every storage keeps to."""


def check_probability(entrance_probability: float) -> float:
    """Return ``entrance_probability``, or raise ``ValueError`` if it is not in (0, 1]."""
    if not 0.0 < entrance_probability <= 1.0:
        raise ValueError(
            f"entrance_probability is {entrance_probability!r}, but must lie in (0, 1]"
        )
    return entrance_probability


def check_size(size: int) -> int:
    """Return ``size``, or raise ``ValueError`` if it is no integer of at least 1."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValueError(f"size is {size!r}, but must be an integer of at least 1")
    return size
