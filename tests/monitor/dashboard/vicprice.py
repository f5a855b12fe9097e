"""``python -m tests.monitor.dashboard.vicprice CSV FILE``: the story of ``vicprice`` on elec2.

The first records of the electricity data go through the whole pipeline on the embedded broker; the
dashboard opens the first change of ``vicprice``, which does not vary before record 17,424.
"""

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
from tests.monitor.dashboard.screenshot import take


def vicprice(
    csv: Annotated[Path, typer.Argument(help="The electricity data.")],
    file: Annotated[Path, typer.Argument(help="A PNG file.")],
    records: Annotated[int, typer.Option(help="From the first one on.")] = 22_000,
) -> None:
    """Take a picture of the dashboard with the story open."""
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
        pipeline.wait_until_through(pipeline.feed(islice(source, records)))
        visit = Visit(browser, dashboard.address, viewport=WIDE)
        visit.live()
        visit.changes().filter(has_text=FEATURE).filter(has_text="iPDP").last.click()
        expect(visit.page.locator("#story-title")).to_contain_text(f"iPDP of {FEATURE}")
        take(visit, file)
        dashboard.stop()


if __name__ == "__main__":
    typer.run(vicprice)
