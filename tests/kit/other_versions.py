"""Another version of a package, as far as its metadata says."""

from pathlib import Path


def installed(folder: Path, package: str, version: str) -> Path:
    """Return a folder that, searched before the others, makes a package another version."""
    found = folder / f"{package}-{version}.dist-info"
    found.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    (found / "METADATA").write_text(text)
    return folder
