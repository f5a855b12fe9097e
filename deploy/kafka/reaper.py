"""Ends the brokers of a folder after the end of the parent process, however it ended."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

from deploy.kafka.broker import Broker


def main(folder: Path, parent: int, *, temporary: bool) -> None:
    """Wait for the end of the parent process, then kill the brokers; remove a temporary folder."""
    while os.getppid() == parent:
        time.sleep(0.2)
    for each in folder.glob("broker-*"):
        broker = Broker(each)
        broker.signal(signal.SIGKILL)
        broker.wait_until_gone(0.0)
    if temporary:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), temporary="--temporary" in sys.argv[3:])
