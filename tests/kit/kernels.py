"""Compiled functions that were kept before one that they call has changed."""

from hashlib import sha256
from pathlib import Path

COMPILES = b"evaluate.compiled import"


def forget_stale_kernels(package: Path, known: Path) -> None:
    """Delete what Numba has kept, if a file with compiled functions has changed since.

    Numba looks at the file of the function itself only. ``known`` is the file that tells the
    sources of what it has kept.
    """
    digest = sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if COMPILES in source:
            digest.update(source)
    if known.exists() and known.read_text() == digest.hexdigest():
        return
    for kept in package.rglob("*.nb[ci]"):
        kept.unlink()
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text(digest.hexdigest())
