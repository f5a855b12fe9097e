"""The command ``fluxplain``."""

import os
import sys
from typing import NoReturn

from fluxplain import __version__
from fluxplain.cli.interruption import importing

HASH_SEED = "PYTHONHASHSEED"


def main() -> NoReturn:
    """Run a command. Ctrl-C ends it quietly, also while it is still being loaded."""
    if sys.argv[1:] == ["--version"]:  # at once: nothing else is loaded
        print(__version__)
        sys.exit(0)
    _hash_as_everywhere()
    with importing():
        from fluxplain.cli.main import main as run  # noqa: PLC0415  takes a moment
    try:
        run()
    except KeyboardInterrupt:
        sys.exit(130)


def _hash_as_everywhere() -> None:
    """Start Python again with the same order of sets in each process, unless a seed is given.

    Some models go through sets of texts, and published results must not depend on the process.
    """
    if HASH_SEED not in os.environ:
        os.environ[HASH_SEED] = "0"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606  ourselves


if __name__ == "__main__":
    main()
