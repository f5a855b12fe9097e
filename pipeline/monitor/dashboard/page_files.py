"""The page's files, in memory: few, small, and no path that a request could leave."""

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).with_name("page")

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""Suffix → content type; what has another suffix, such as a licence, is not served."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is sent: plain or zipped, and its ETag."""

    content_type: str
    body: bytes
    zipped: bytes
    tag: str


def page_files() -> dict[str, File]:
    """Return path → file; the page itself is at ``/``."""
    files = {}
    for path in sorted(PAGE.rglob("*")):
        if path.suffix in TYPES:
            body = path.read_bytes()
            tag = hashlib.sha256(body).hexdigest()[:16]
            file = File(TYPES[path.suffix], body, gzip.compress(body, mtime=0), f'"{tag}"')
            files[f"/{path.relative_to(PAGE).as_posix()}"] = file
    files["/"] = files.pop("/index.html")
    return files
