"""Prints the digest of a trial of the model: ``python -m fluxplain.cli.doctor.trial TOML FILE``."""

import sys
from pathlib import Path

from fluxplain.cli.doctor.model_findings import digest, trial_records
from fluxplain.config import load_config


def main(config: str, values: str) -> None:
    """Run the model role on the observations of a file, one a line."""
    lines = Path(values).read_bytes().split(b"\n")
    sys.stdout.write("\n" + digest(trial_records(load_config(Path(config), "model"), lines)))


if __name__ == "__main__":
    main(*sys.argv[1:])
