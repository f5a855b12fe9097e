"""``python -m tests.monitor.dashboard.screenshot``: pictures of the dashboard with a story open."""

import tempfile
import tomllib
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from playwright.sync_api import expect

from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.sources import open_source
from tests.kit.kafka_pipeline import KafkaPipeline
from tests.kit.settings import write_config
from tests.measure.elec2 import CONFIG, FEATURE
from tests.monitor.dashboard.browser import WIDE, Dashboard, Visit, chromium
from tests.monitor.dashboard.demo import demo

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


def take(visit: Visit, file: Path, title: str, *, full_page: bool = False) -> None:
    """Take the picture when the story of this title is drawn, and leave the page."""
    expect(visit.page.locator("#story-title")).to_contain_text(title)
    visit.page.mouse.move(0, 0)
    visit.page.wait_for_timeout(SETTLED_MS)
    visit.page.screenshot(path=file, full_page=full_page)
    visit.close()


if __name__ == "__main__":
    app()
