"""``python -m tests.monitor.dashboard.screenshot FILE``: the dashboard of a whole demonstration."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from playwright.sync_api import expect

from tests.monitor.dashboard.browser import Visit, chromium
from tests.monitor.dashboard.demo import demo

SETTLED_MS = 1_500
"""Until the last curves have been asked for and drawn."""


def screenshot(
    file: Annotated[Path, typer.Argument(help="A PNG file.")],
    theme: Annotated[str, typer.Option(help="light or dark")] = "light",
    width: Annotated[int, typer.Option(help="Pixels; below 760 the whole page is shown.")] = 1440,
) -> None:
    """Run the demo to its end, open the story of what changed most, and take a picture."""
    with (
        tempfile.TemporaryDirectory() as out,
        demo(Path(out), "--stay") as running,
        chromium() as browser,
    ):
        viewport = {"width": width, "height": 1000}
        visit = Visit(browser, running.address, viewport=viewport, color_scheme=theme)
        running.line("(The dashboard stays)")
        visit.live()
        changes = visit.changes().filter(has_text="age").filter(has_text="iPFI")
        changes.first.click()
        expect(visit.page.locator("#story-title")).to_have_text("iPFI of age rose")
        take(visit, file, full_page=width < 760)


def take(visit: Visit, file: Path, *, full_page: bool = False) -> None:
    """Take the picture when all is drawn, and leave the page."""
    visit.page.mouse.move(0, 0)
    visit.page.wait_for_timeout(SETTLED_MS)
    visit.page.screenshot(path=file, full_page=full_page)
    visit.close()


if __name__ == "__main__":
    typer.run(screenshot)
