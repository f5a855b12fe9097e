"""Makes ``build/package/fluxplain``, a folder of links through which a clone imports the package.

It has the modules of ``pipeline``, and ``agents`` and ``schemas`` as packages in it. An editable
install adds ``build/package`` to the path, where type checkers and editors find it too. Run as a
program, it renews the links.
"""

import os
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program
    BuildHookInterface = object

ROOT = Path(__file__).parents[1]

PACKAGE = ROOT / "build" / "package" / "fluxplain"

INSIDE = ("agents", "schemas")
"""Folders that are packages in ``fluxplain``."""


class CustomBuildHook(BuildHookInterface):
    """Makes the links before an editable install."""

    def initialize(self, version: str, _build_data: dict[str, Any]) -> None:
        """Make the links; wheels hold copies instead."""
        if version == "editable":
            make_links()


def make_links() -> None:
    """Make the links that are missing, and remove those that lead nowhere."""
    PACKAGE.mkdir(parents=True, exist_ok=True)
    for old in PACKAGE.iterdir():
        if old.is_symlink() and not old.exists():
            old.unlink()
    for path in [*(ROOT / "pipeline").iterdir(), *(ROOT / name for name in INSIDE)]:
        link = PACKAGE / path.name
        if path.name != "__pycache__" and not link.is_symlink():
            link.symlink_to(os.path.relpath(path, PACKAGE))


if __name__ == "__main__":
    make_links()
