"""The command ``fluxplain``."""

import sys
from typing import NoReturn

from fluxplain import __version__
from fluxplain.cli.interruption import ended_by_ctrl_c


def main() -> NoReturn:
    """Run a command. Ctrl-C ends it quietly, also while it is still being loaded."""
    if sys.argv[1:] == ["--version"]:  # at once: nothing else is loaded
        print(__version__)
        sys.exit(0)
    with ended_by_ctrl_c():
        from fluxplain.cli.main import main as run  # noqa: PLC0415  takes a moment
    try:
        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
