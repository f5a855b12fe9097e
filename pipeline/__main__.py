"""The command ``fluxplain``."""

import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run a command. Ctrl-C ends it quietly, also while it is still being loaded."""
    # libraries that are being loaded would catch an exception, and go on
    handler = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from pipeline.cli import main as run  # noqa: PLC0415  takes a second

    signal.signal(signal.SIGINT, handler)
    try:
        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
