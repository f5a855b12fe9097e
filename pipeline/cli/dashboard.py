"""The command that serves the dashboard."""

import asyncio
import os

from pipeline.cli.common import (
    DEFAULT_CONFIG,
    ConfigPath,
    app,
    broker_may_come_back,
    load,
    ready,
    say,
)
from pipeline.loading import ended_by_ctrl_c
from pipeline.supervisor import end_with_supervisor

PANEL = "Look"

NICENESS = 5
"""On a busy machine the pipeline goes first."""


@app.command(rich_help_panel=PANEL)
def dashboard(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Serve a page that shows live what the model relies on, and what changed.

    The address is printed; `dashboard.host` and `dashboard.port` of the settings name it.
    `fluxplain up` serves the same page. It reads the topics as any consumer, so it may be started
    late, stopped, or run on another machine, and the pipeline does not notice.
    """
    with ended_by_ctrl_c():
        from pipeline.monitor.dashboard.run import run  # noqa: PLC0415  loads the web server
    settings = load(config, "reader")
    end_with_supervisor()
    os.nice(NICENESS)
    with broker_may_come_back():
        asyncio.run(run(ready(settings), say))
