"""Commands that prepare a pipeline: configuration, topics, registered settings."""

from contextlib import closing

import orjson
import typer
from rich.table import Column, Table

from fluxplain import evaluate, stages
from fluxplain.cli import common as cli
from fluxplain.cli.autocorrelation_check import autocorrelation_warnings
from fluxplain.cli.model_title import model_title
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.checkpoints.checkpoint import CheckpointStore, Slot
from fluxplain.kafka.checkpoints.configured import fingerprint_of, identity_of
from fluxplain.kafka.client import cluster
from fluxplain.kafka.embedded import resolve
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import Fingerprint
from fluxplain.kafka.registry.codec import check_registry
from fluxplain.kafka.topics.create import create_topics, topic_specs
from fluxplain.kafka.topics.progress import GroupOffsets
from fluxplain.schemas import DeadLetter, stream_name
from fluxplain.schemas.wording import plural

topics_app = cli.group("topics", cli.PREPARE, "Create and describe the pipeline's topics.")
settings_app = cli.group(
    "settings",
    cli.PREPARE,
    "Show and replace a pipeline's settings.",
)


@cli.app.command(rich_help_panel=cli.PREPARE)
def check(config: cli.ConfigPath = cli.DEFAULT_CONFIG) -> None:
    """Check the settings, model, broker and topics.

    The model predicts a made-up observation; a failure there is only a warning, as is too much
    autocorrelation of a feature in the latest records. The exit status is 0 only if the settings
    are valid, the broker answers and all topics exist. To see whether workers can resume, run
    `fluxplain checkpoints list`.
    """
    settings = cli.load(config)
    cli.say(f"{config}: valid")
    model, evaluator = _try_model(settings)
    cli.say(f"model: {model}")
    cli.say(f"evaluator: {evaluator}")
    for name, own in settings.own_streams.items():
        model, evaluator = _try_model(own)
        cli.say(f"stream {name}: model {model}, evaluator {evaluator}")
    settings = resolve(settings)
    metadata = cluster(settings)
    cli.say(f"broker: {len(metadata.brokers)} at {settings.kafka.bootstrap_servers}")
    cli.ready(settings)
    cli.say(f"topics: all {len(topic_specs(settings))} exist")
    check_streams(settings, len(metadata.topics[settings.topic(settings.source)].partitions))
    if settings.registry.url is not None:
        check_registry(settings)
        cli.say(f"registry: at {settings.registry.url}")
    for warning in autocorrelation_warnings(settings):
        cli.warn(warning)


@topics_app.command("create")
def topics_create(config: cli.ConfigPath = cli.DEFAULT_CONFIG) -> None:
    """Create the topics that are missing.

    Existing topics stay unchanged.
    """
    for name, result in create_topics(resolve(cli.load(config))).items():
        cli.say(f"{name}: {result}")


@topics_app.command("describe")
def topics_describe(config: cli.ConfigPath = cli.DEFAULT_CONFIG) -> None:
    """Show the topics and the lag of each role.

    For each topic: its purpose, partitions, messages, and the lag of the role that reads it.
    """
    settings = resolve(cli.load(config))
    existing = cluster(settings).topics
    readers = {
        name: replica.role
        for replica in settings.replicas()
        for name in settings.inputs(replica.role)
    }
    counts = [Column(name, justify="right") for name in ("partitions", "messages", "lag")]
    table = Table(Column("topic", no_wrap=True), "purpose", *counts, "reader", box=None)
    for spec in topic_specs(settings):
        if spec.name not in existing:
            table.add_row(spec.name, spec.purpose, "missing")
            continue
        topic = spec.name.removeprefix(settings.topics.prefix)
        role = readers.get(topic)
        lags = []
        for replica in settings.replicas(role) if role else settings.replicas()[:1]:
            with closing(GroupOffsets(settings, replica, topic)) as offsets:
                starts, ends = offsets.starts(), offsets.ends()
                lags.append(offsets.lag())
        lag = f"{max(lags):,}" if role else ""
        kept = sum(ends.values()) - sum(starts.values())
        table.add_row(spec.name, spec.purpose, str(len(ends)), f"{kept:,}", lag, role or "")
    cli.console.print(table)


@settings_app.command("show")
def settings_show(config: cli.ConfigPath = cli.DEFAULT_CONFIG) -> None:
    """Compare settings with the registered ones.

    The first worker of a pipeline registers its settings in the topic `register`; all other workers
    must have the same. Only settings and versions that affect the results are compared.
    """
    settings, fingerprint = _with_fingerprint(cli.load(config))
    with closing(Register(settings)) as register:
        registered = register.read()
    if registered.fingerprint is None:
        cli.say("No settings are registered yet: the first worker registers its own.")
        return
    differences = registered.fingerprint.differences(fingerprint)
    cli.say(f"Registered settings: number {registered.number}.")
    for each in differences or ["nothing"]:
        cli.say(f"  differs: {each}")


@settings_app.command("replace")
def settings_replace(
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    yes: cli.Yes = False,
) -> None:
    """Replace the registered settings.

    The settings of the file, and the versions of the installed libraries, replace the registered
    ones. **Stop all workers first**, then replace the settings, then start workers with the new
    ones. Workers that still run end on their own.

    The state is rebuilt from the beginning of the log; if that has been deleted, a model starts
    cold. Records that follow carry another `incarnation`, because the same `seq` can have other
    content. To keep what a model has learned, see `fluxplain model export`.
    """
    settings, fingerprint = _with_fingerprint(cli.load(config))
    with closing(Register(settings)) as register:
        registered = register.read()
        before = registered.fingerprint
        differences = before.differences(fingerprint) if before else []
        if before is not None and not differences:
            cli.say("These settings are the registered ones: nothing to replace.")
            return
        for each in differences:
            cli.say(f"  differs: {each}")
        if not yes:
            prefix = settings.topics.prefix
            typer.confirm(f"Replace the settings of the pipeline {prefix}?", abort=True)
        cli.say(f"Registered settings: number {register.replace(fingerprint)}.")


def _try_model(settings: Config) -> tuple[str, str]:
    """Return the model and its evaluator with the reason; warn if it fails on an observation."""
    topic = settings.topic(settings.source)
    stage = stages.ModelStage(settings, stream_name(topic, 0))
    evaluator = evaluate.choose(stage.model, settings.model.evaluator)
    x = {name: 0.0 if kind == "numeric" else "a" for name, kind in settings.features.items()}
    value = orjson.dumps({"x": x})
    for record in stages.process(stage, stages.Message(topic, 0, 0, None, value)):
        if isinstance(record, DeadLetter):
            made_up = f"a made-up observation, {value.decode()}"
            cli.warn(f"The model failed on {made_up}: {record.reason}")
    return model_title(settings, stage.model), f"{evaluator.kind} ({evaluator.reason})"


def check_streams(settings: Config, partitions: int) -> None:
    """Raise ConfigError for settings of streams that do not exist."""
    missing = sorted(each for each in settings.streams if each >= partitions)
    if missing:
        numbers = "number 0" if partitions == 1 else f"from 0 to {partitions - 1}"
        raise ConfigError(
            f"streams has {', '.join(map(str, missing))}, but {settings.topic(settings.source)} "
            f"has {plural(partitions, 'partition')}, {numbers}"
        )


def resumption(store: CheckpointStore, slot: Slot) -> str:
    """Describe where a worker would resume; raise ``CheckpointError`` if it cannot."""
    checkpoint = store.load(slot)
    if checkpoint is None:
        return f"{slot}: no checkpoint"
    return f"{slot}: resumes at offset {checkpoint.next_offset:,}"


def _with_fingerprint(config: Config) -> tuple[Config, Fingerprint]:
    settings = cli.ready(config)
    return settings, fingerprint_here(settings)


def fingerprint_here(settings: Config) -> Fingerprint:
    """Return the fingerprint of these settings, with the versions that are installed here."""
    return fingerprint_of(settings, identity_of(settings, cluster(settings)))
