"""The command ``fluxplain``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run a command. Ctrl-C ends it quietly, also while it is still being loaded."""
    try:
        from pipeline.cli import main as run  # noqa: PLC0415  takes a second

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
