"""``python -m tests.monitor.dashboard.screenshot``: pictures of the dashboard with a story open."""

import tempfile
import tomllib
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from playwright.sync_api import Browser, expect

from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.monitor.dashboard.server import serving
from fluxplain.sources import open_source
from tests.kit.kafka_pipeline import KafkaPipeline
from tests.kit.settings import write_config
from tests.measure.elec2 import CONFIG, FEATURE
from tests.monitor.dashboard.browser import WIDE, Dashboard, Visit, chromium
from tests.monitor.dashboard.demo import demo
from tests.monitor.dashboard.states import STATES, settings

WIDTHS = (390, 1_440, 3_840)

MIDDLE = 1_440

HEIGHTS = {390: 844, 1_440: 900, 3_840: 2_160}

SETTLED_MS = 1_500
"""Until the last curves have been requested and drawn."""

app = typer.Typer()

Picture = Annotated[Path, typer.Argument(help="A PNG file.")]


@app.command("demo")
def of_demo(
    file: Picture,
    theme: Annotated[str, typer.Option(help="light or dark")] = "light",
    width: Annotated[int, typer.Option(help="Pixels; below 760 the whole page is shown.")] = 1440,
) -> None:
    """Run the demo to its end, and open the story of the clearest change."""
    with (
        tempfile.TemporaryDirectory() as out,
        demo(Path(out), "--stay") as running,
        chromium() as browser,
    ):
        viewport = {"width": width, "height": 1000}
        visit = Visit(browser, running.address, viewport=viewport, color_scheme=theme)
        running.line("(The dashboard keeps running)")
        visit.live()
        visit.changes().filter(has_text="age").filter(has_text="iPFI").first.click()
        take(visit, file, "iPFI of age rose", full_page=width < 760)


@app.command()
def vicprice(
    csv: Annotated[Path, typer.Argument(help="The electricity data.")],
    file: Picture,
    records: Annotated[int, typer.Option(help="Number of records, from the first on.")] = 22_000,
) -> None:
    """Send electricity data through the pipeline, and open the first change of ``vicprice``.

    ``vicprice`` does not vary before record 17,424.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedBroker() as broker,
        KafkaPipeline(CONFIG, broker.bootstrap_servers, Path(folder)) as pipeline,
        chromium() as browser,
    ):
        settings = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
        settings["kafka"] = {"bootstrap_servers": broker.bootstrap_servers}
        dashboard = Dashboard(pipeline.config, write_config(Path(folder) / "elec2.toml", settings))
        source = open_source(str(csv), pipeline.config)
        pipeline.process(islice(source, records))
        visit = Visit(browser, dashboard.address, viewport=WIDE)
        visit.live()
        visit.changes().filter(has_text=FEATURE).filter(has_text="iPDP").last.click()
        take(visit, file, f"iPDP of {FEATURE} rose")
        dashboard.stop()


@app.command()
def states(
    folder: Annotated[Path, typer.Argument(help="Where to write STATE-WIDTH-THEME.png.")],
    only: Annotated[list[str] | None, typer.Option(help="Only these states.")] = None,
) -> None:
    """Picture each state of the page at three widths, light and dark.

    Prints what axe finds, and which controls the Tab key does not reach.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for state in only or STATES:
            make, tables = STATES[state]
            with ExitStack() as stack:
                address = stack.enter_context(serving(settings(**tables), make()))
                visits = [
                    (f"{state}-{width}-{theme}", _visit(browser, address, width, theme))
                    for width in WIDTHS
                    for theme in ("light", "dark")
                ]
                if state == "lost":
                    stack.close()
                for name, visit in visits:
                    _picture(visit, folder / f"{name}.png")


def _visit(browser: Browser, address: str, width: int, theme: str) -> Visit:
    viewport = {"width": width, "height": HEIGHTS[width]}
    visit = Visit(browser, f"{address}/", viewport=viewport, color_scheme=theme, timezone_id="UTC")
    visit.page.wait_for_timeout(SETTLED_MS)
    return visit


def _picture(visit: Visit, file: Path) -> None:
    is_lost = file.name.startswith("lost")
    if is_lost:
        visit.page.locator("body.is-lost").wait_for()
    visit.page.screenshot(path=file, full_page=True)
    wrong = visit.barriers()
    missed = visit.out_of_reach() if f"-{MIDDLE}-" in file.name else []
    for each in [*wrong, *missed]:
        print(f"{file.name}: {each}", flush=True)
    # a page whose server is gone complains
    (visit.leave if is_lost else visit.close)()


def take(visit: Visit, file: Path, title: str, *, full_page: bool = False) -> None:
    """Take the picture when the story of this title is drawn, and leave the page."""
    expect(visit.page.locator("#story-title")).to_contain_text(title)
    visit.page.mouse.move(0, 0)
    visit.page.wait_for_timeout(SETTLED_MS)
    visit.page.screenshot(path=file, full_page=full_page)
    visit.close()


if __name__ == "__main__":
    app()
