"""The page's files, held in memory, so that no request can reach another path."""

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
"""Suffix → content type; files with other suffixes, such as licences, are not served."""


@dataclass(frozen=True, slots=True)
class File:
    """A file's content, plain and gzipped, and its ETag."""

    content_type: str
    body: bytes
    zipped: bytes
    tag: str


def page_files() -> dict[str, File]:
    """Return URL path → file; the page itself is at ``/``."""
    files = {}
    for path in sorted(PAGE.rglob("*")):
        if path.suffix in TYPES:
            body = path.read_bytes()
            tag = hashlib.sha256(body).hexdigest()[:16]
            file = File(TYPES[path.suffix], body, gzip.compress(body, mtime=0), f'"{tag}"')
            files[f"/{path.relative_to(PAGE).as_posix()}"] = file
    files["/"] = files.pop("/index.html")
    return files
