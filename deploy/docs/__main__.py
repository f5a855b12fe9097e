"""Regenerate the generated parts of the pages, and the AsyncAPI document."""

from deploy.docs import asyncapi
from deploy.docs.pages import FOLDER, filled

if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.md")):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    asyncapi.PATH.write_bytes(asyncapi.text())
