"""Commands that send changes to a webhook."""

import asyncio
import logging.config
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fluxplain.alerts.message import body, sample
from fluxplain.cli.common import (
    DEFAULT_CONFIG,
    RUN,
    ConfigPath,
    group,
    load,
    ready,
    say,
    status_for_supervisor,
)
from fluxplain.cli.supervisor import end_with_supervisor
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.client_logs import logging_settings
from fluxplain.schemas import stream_name

if TYPE_CHECKING:
    from fluxplain.alerts.webhook import Answer

alerts_app = group("alerts", RUN, "Send changes, or a test alert, to a webhook.")


@alerts_app.command("run")
def alerts_run(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Send an alert for each new change.

    The command sends changes that pass the filter, until SIGTERM or Ctrl-C. `fluxplain up` does
    this too if `alerts.url` is set. The first start begins with new changes; later starts resume
    where the last one ended.
    """
    settings = _settings(config)
    from fluxplain.alerts.forward import run  # noqa: PLC0415  the test needs no Kafka

    end_with_supervisor()
    with status_for_supervisor():
        settings = ready(settings)
        logging.config.dictConfig(logging_settings())
        asyncio.run(run(settings))


@alerts_app.command("test")
def alerts_test(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Send a test alert.

    The alert is about a made-up change, is signed like all others and has `"test": true`. The
    receiver's answer is printed. No broker is needed. The exit status is 0 if the receiver accepted
    the alert, otherwise 1.
    """
    settings = _settings(config)
    name, answer = asyncio.run(_send_sample(settings))
    say(f"{name} {answer.what}")
    if not settings.alerts.signing_secret():
        say("Not signed: neither FLUXPLAIN_ALERTS__SECRET nor alerts.secret_file is set.")
    if not answer.delivered:
        raise typer.Exit(1)


async def _send_sample(settings: Config) -> "tuple[str, Answer]":
    from fluxplain.alerts.webhook import Webhook  # noqa: PLC0415  other commands need no HTTP

    change = sample(stream_name(settings.topic(settings.source), 0), settings.explained[0])
    async with Webhook(settings.alerts) as webhook:
        return webhook.name, await webhook.send(change.id, body(change, is_test=True))


def _settings(config: Path) -> Config:
    settings = load(config, "reader")
    if settings.alerts.url is None:
        raise ConfigError(
            f"alerts.url is not set, so there are no alerts: set it in {config}, or set the "
            "environment variable FLUXPLAIN_ALERTS__URL"
        )
    return settings
