"""The command line, ``fluxplain``."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from pipeline import __version__
from pipeline.config import EMBEDDED, ENV_PREFIX, Config, ConfigError, load_config
from pipeline.interruption import until_interrupted
from pipeline.kafka.checkpoints import CheckpointError, CheckpointStore, Slot, open_store, slots
from pipeline.kafka.client import AccessError, BrokerError, cluster, no_topics
from pipeline.kafka.embedded import (
    ADDRESS_FILE,
    EmbeddedBroker,
    resolve,
    workers_environment,
)
from pipeline.kafka.exits import EXIT_NOT_YET, EXIT_REFUSED
from pipeline.kafka.producer import DeliveryError
from pipeline.kafka.progress import CHAIN, GroupOffsets
from pipeline.kafka.reader import TopicReader
from pipeline.kafka.replay import ReplayOptions
from pipeline.kafka.replay import replay as replay_observations
from pipeline.kafka.topics import create_topics, missing_topics, topic_specs
from pipeline.loading import ended_by_ctrl_c
from pipeline.monitor.history import History
from pipeline.monitor.tail import line
from pipeline.monitor.watch import printable, render
from pipeline.outputs import OUTPUTS, LocalFiles
from pipeline.parts import Part, Role
from pipeline.sources import SourceError, open_source
from pipeline.supervisor import Supervisor, WorkerRefusedError, end_with_supervisor
from schemas import RECORDS, BadRecordError

USER_ERRORS = (ConfigError, BrokerError, DeliveryError, SourceError, WorkerRefusedError)
"""What a person can mend: shown as a message, never as a stack trace."""

SOURCE_HELP = (
    "A CSV file (.csv, .csv.gz) with a header, or a River data set: river:Phishing, "
    "river:Agrawal?classification_function=1"
)

TOPICS = tuple(record.TOPIC for record in RECORDS)

TEMPLATE = Path(__file__).with_name("template.toml")

app = typer.Typer(
    name="fluxplain",
    help="Explains models in flux: what an online model on Kafka relies on, and when that changes."
    "\n\nStart with `fluxplain demo`, or `fluxplain init` for your own stream.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
topics_app = typer.Typer(no_args_is_help=True, help="Create and describe the pipeline's topics.")
app.add_typer(topics_app, name="topics")
checkpoints_app = typer.Typer(
    no_args_is_help=True,
    help="See and remove the state of the workers. Run these where a worker would run.",
)
app.add_typer(checkpoints_app, name="checkpoints")

console = Console()

ConfigPath = Annotated[
    Path,
    typer.Option("--config", "-c", metavar="FILE", help="Settings, as `fluxplain init` writes."),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of a CSV file with the label; by default label.column of the settings.",
    ),
]
DEFAULT_CONFIG = Path("fluxplain.toml")


def main() -> NoReturn:
    """Run a command; a user's mistake gives a message, not a stack trace."""
    try:
        app()
    except BrokenPipeError:
        # whoever reads our output has enough, as in `fluxplain tail … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        Console(stderr=True).print(f"Error: {name}{error.strerror}", style="red", markup=False)
        sys.exit(2)
    except USER_ERRORS as error:
        Console(stderr=True).print(f"Error: {error}", style="red", markup=False, highlight=False)
        sys.exit(2)
    sys.exit(0)


@app.callback(invoke_without_command=True)
def version_option(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Explain models in flux."""
    if version:
        console.print(__version__, highlight=False)
        raise typer.Exit


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="File to write.")] = DEFAULT_CONFIG,
) -> None:
    """Write a commented configuration to start from."""
    try:
        with path.open("x") as file:
            file.write(TEMPLATE.read_text())
    except FileExistsError:
        raise ConfigError(f"{path} is there already: remove it, or give another name") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    console.print(
        f"Wrote {path}. Name your brokers, features, label and model there, then run "
        f"`fluxplain topics create -c {path}` and `fluxplain check -c {path}`.",
        markup=False,
        highlight=False,
    )


@app.command()
def check(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Validate a configuration, and say whether the broker answers.

    The exit status is 0 only if both are well and all topics exist.
    """
    settings = _load(config)
    from pipeline.evaluate import choose  # noqa: PLC0415  loads River

    model = settings.make_model()
    evaluator = choose(model, settings.model.evaluator)
    console.print(f"{config}: valid", markup=False, highlight=False)
    console.print(f"model: {type(model).__name__}", highlight=False)
    console.print(f"evaluator: {evaluator.kind} ({evaluator.reason})", highlight=False)
    settings = resolve(settings)
    metadata = cluster(settings)
    console.print(
        f"broker: {len(metadata.brokers)} at {settings.kafka.bootstrap_servers}", highlight=False
    )
    missing = missing_topics(settings)
    if missing:
        raise no_topics(settings, missing)
    console.print(f"topics: all {len(topic_specs(settings))} exist", highlight=False)


@topics_app.command("create")
def topics_create(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Create the topics that are missing; what exists stays as it is."""
    for name, result in create_topics(resolve(_load(config))).items():
        console.print(f"{name}: {result}", markup=False, highlight=False)


@topics_app.command("describe")
def topics_describe(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Show the topics: what each is for, its partitions, messages, and how far behind a role is."""
    settings = resolve(_load(config))
    existing = cluster(settings).topics
    readers = {topic: role for role, topic in CHAIN}
    table = Table(box=None)
    table.add_column("topic", no_wrap=True)
    table.add_column("for")
    for name in ("partitions", "messages", "lag"):
        table.add_column(name, justify="right")
    table.add_column("of role")
    for spec in topic_specs(settings):
        if spec.name not in existing:
            table.add_row(spec.name, spec.purpose, "missing")
            continue
        topic = spec.name.removeprefix(settings.topics.prefix)
        role = readers.get(topic)
        lags = []
        for part in settings.parts(role) if role else settings.parts()[:1]:
            with closing(GroupOffsets(settings, part, topic)) as offsets:
                starts, ends = offsets.starts(), offsets.ends()
                committed = offsets.committed()
                lags.append(sum(end - max(committed[p], starts[p]) for p, end in ends.items()))
        lag = f"{max(lags):,}" if role else ""
        kept = sum(ends.values()) - sum(starts.values())
        table.add_row(spec.name, spec.purpose, str(len(ends)), f"{kept:,}", lag, role or "")
    console.print(table)


@checkpoints_app.command("list")
def checkpoints_list(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Show where each role goes on in each partition, or why it cannot."""
    settings = resolve(_load(config))
    store = open_store(settings, cluster(settings))
    for slot in slots(settings):
        _say(_standing(store, slot))


@checkpoints_app.command("remove")
def checkpoints_remove(
    config: ConfigPath = DEFAULT_CONFIG,
    role: Annotated[Role | None, typer.Option(help="Of one role only.")] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Of one partition of the role's input only.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove checkpoints, so that the state is rebuilt from the beginning of the log.

    **Stop all workers of the role first**: those that run know nothing of it. The same settings and
    versions give the same results again; others would give other results under identities that are
    published already, so take another topics.prefix for them. What was deleted from the log
    meanwhile is missing in the new state.
    """
    settings = resolve(_load(config))
    store = open_store(settings, cluster(settings))
    chosen = slots(settings, role, partition)
    if not yes:
        of_partition = "all partitions" if partition is None else f"partition {partition}"
        typer.confirm(
            f"Remove the checkpoints of {role or 'all roles'}, {of_partition}? "
            "Their workers must be stopped.",
            abort=True,
        )
    for slot in chosen:
        _say(f"{slot}: {'removed' if store.remove(slot) else 'nothing was there'}")


@app.command()
def worker(
    role: Annotated[
        Role, typer.Option(help="Which part of the pipeline: model, explainer or drift.")
    ],
    config: ConfigPath = DEFAULT_CONFIG,
    shard: Annotated[
        int | None,
        typer.Option(min=0, help="Which shard of the model role, from 0; if model.shards > 1."),
    ] = None,
) -> None:
    """Run one role of the pipeline, until SIGTERM or Ctrl-C.

    Each role is a consumer group: run as many workers of a role as its topic has partitions.
    With model.shards above 1 each shard of the model role is a group: run a worker of each.
    """
    with ended_by_ctrl_c():
        # Faust is slow to import, and only workers need it
        from agents import factory  # noqa: PLC0415
        from pipeline.kafka.app import run  # noqa: PLC0415

        create = factory(role)
    settings = _load(config, role)
    end_with_supervisor()
    with _broker_may_come_back():
        run(create(_ready(settings), _part(settings, role, shard)))


@app.command()
def up(
    config: ConfigPath = DEFAULT_CONFIG,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Run a broker too, in this process, in memory.")
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Of each role. They share its topic's partitions: as many as topics.partitions "
            "(the model role: topics.features_partitions) have work.",
        ),
    ] = 1,
) -> None:
    """Run all roles on this machine; start again what dies; stop all on Ctrl-C."""
    settings = _load(config)
    with until_interrupted():
        if not embedded:
            with _broker_may_come_back():
                _ready(settings)
            _supervise(config, settings, {}, workers)
        if settings.kafka.bootstrap_servers != EMBEDDED:
            raise ConfigError(
                f"kafka.bootstrap_servers is {settings.kafka.bootstrap_servers!r}, but --embedded "
                f"runs a broker here: set it to {EMBEDDED!r}, in {config} or by "
                f"FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS={EMBEDDED}, so that replay and watch find it"
            )
        with EmbeddedBroker() as broker, tempfile.TemporaryDirectory(prefix="fluxplain-") as state:
            create_topics(broker.settings_for(settings))
            broker.publish_address()
            _say_embedded(broker)
            _supervise(config, settings, workers_environment(broker, Path(state)), workers)
    _say("Stopped.")


@app.command()
def broker() -> None:
    """Run the embedded broker alone, until Ctrl-C."""
    with until_interrupted(), EmbeddedBroker() as embedded:
        embedded.publish_address()
        _say_embedded(embedded)
        while True:
            time.sleep(1.0)


@app.command()
def replay(  # noqa: PLR0917  options of a command
    source: Annotated[str, typer.Argument(help=SOURCE_HELP)],
    config: ConfigPath = DEFAULT_CONFIG,
    label: LabelColumn = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Records to send at most.")] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Records a second.")] = None,
    max_lag: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Most records on their way through the pipeline. By default as many as the "
            "embedded broker can hold; no limit on another.",
        ),
    ] = None,
    partition: Annotated[
        int, typer.Option(min=0, help="Partition of features: a source is one stream.")
    ] = 0,
) -> None:
    """Send recorded observations into the features topic, in order.

    The embedded broker keeps only the newest 5 MiB of a partition, so there this waits for the
    pipeline whenever too many records are on their way.
    """
    settings = _ready(_load(config))
    records = open_source(source, settings, label=label, limit=limit)
    _warn_without_label(source, settings, label)
    options = ReplayOptions(partition=partition, rate=rate, max_lag=max_lag)
    with _progress() as progress:
        task = progress.add_task(records.name, total=records.total, note="")

        patience = _Patience()
        sent = 0

        def report(now_sent: int, through: int) -> None:
            nonlocal sent
            sent = now_sent
            note = f"{sent - through:,} on their way" if sent > through else ""
            if patience.exhausted(through):
                note += ", waiting for the pipeline: does `fluxplain up` run?"
            progress.update(task, completed=sent, note=note)

        try:
            sent = replay_observations(settings, records, options, report=report)
        finally:
            # also when interrupted: a second try begins behind them
            progress.stop()
            console.print(f"Sent {sent:,} records.", highlight=False)


@app.command()
def local(
    source: Annotated[str, typer.Argument(help=SOURCE_HELP)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")],
    config: ConfigPath = DEFAULT_CONFIG,
    label: LabelColumn = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Records to take at most.")] = None,
) -> None:
    """Run the whole pipeline in this process, without Kafka, and write what it would publish.

    Writes predictions.jsonl, explanations.jsonl, changes.jsonl and dead-letters.jsonl.
    """
    settings = _load(config)
    from pipeline.local import LocalPipeline  # noqa: PLC0415  loads much of River

    records = open_source(source, settings, label=label, limit=limit)
    _warn_without_label(source, settings, label)
    if records.total is None and limit is None and source.startswith("river:"):
        raise SourceError(f"{source} may have no end: give --limit")
    pipeline = LocalPipeline(settings)
    with _progress() as progress, LocalFiles(out) as files:
        task = progress.add_task(records.name, total=records.total, note="")
        for seq, value in enumerate(records):
            for record in pipeline.step(seq, value):
                files.write(record)
            progress.update(task, advance=1)
    for topic, count in files.counts.items():
        console.print(f"{out / topic}.jsonl: {count:,}", markup=False, highlight=False)
    if files.last_dead_letter:
        _say(f"The last record that could not be used: {files.last_dead_letter.reason}")


@app.command()
def tail(
    topic: Annotated[str, typer.Argument(help=f"One of {', '.join(TOPICS)}.")],
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: Annotated[
        bool, typer.Option("--json", help="Each record as it is on the topic.")
    ] = False,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the oldest record there is.")
    ] = False,
    until_idle: Annotated[
        float | None,
        typer.Option(min=0.1, metavar="SECONDS", help="End when nothing came for so long."),
    ] = None,
) -> None:
    """Print the records of a topic as they come, until Ctrl-C."""
    settings = resolve(_load(config))
    name = topic.removeprefix(settings.topics.prefix)
    if name not in TOPICS:
        raise ConfigError(f"there is no topic {topic!r}: use one of {', '.join(TOPICS)}")
    with (
        until_interrupted(),
        TopicReader(settings, [name], from_beginning=from_beginning) as reader,
    ):
        last = time.monotonic()
        while until_idle is None or time.monotonic() - last < until_idle:
            for message in reader.poll(0.2):
                last = time.monotonic()
                print(_printed(name, message.value(), as_json=as_json))
            sys.stdout.flush()


@app.command()
def watch(
    config: ConfigPath = DEFAULT_CONFIG,
    stream: Annotated[
        str | None,
        typer.Option(metavar="TOPIC-PARTITION", help="Which stream; by default one with news."),
    ] = None,
) -> None:
    """Show live what the model relies on now, its loss, throughput and the latest changes."""
    settings = resolve(_load(config))
    history = History(alpha=settings.explain.alphas[0])
    with (
        until_interrupted(),
        TopicReader(settings, list(OUTPUTS), from_beginning=True) as reader,
        Live(console=console, auto_refresh=False, screen=console.is_terminal) as live,
    ):
        while True:
            messages = reader.poll(0.25)
            now = time.monotonic()
            for message in messages:
                _add(history, reader.name(message), message.value(), now)
            live.update(render(history, stream=stream, now=now), refresh=True)


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the picture and the workers' log.")
    ] = Path("demo-output"),
    records: Annotated[
        int, typer.Option(min=1000, help="Observations; the concept changes after half of them.")
    ] = 6000,
) -> None:
    """Show the whole pipeline on the embedded broker, with a stream that drifts half way."""
    from pipeline.demo import run_demo  # noqa: PLC0415  loads the plotting library

    with until_interrupted():
        run_demo(out, records, console)


class _Patience:
    """Notices that something has not moved for a while."""

    SECONDS = 20.0

    def __init__(self) -> None:
        self._last = -1
        self._since = time.monotonic()

    def exhausted(self, value: int) -> bool:
        if value != self._last:
            self._last, self._since = value, time.monotonic()
        return time.monotonic() - self._since > self.SECONDS


def _load(config: Path, role: Role | None = None) -> Config:
    """Return the settings; what they refer to may take long to be imported."""
    with ended_by_ctrl_c():
        return load_config(config, role)


def _part(settings: Config, role: Role, shard: int | None) -> Part:
    parts = settings.parts(role)
    if len(parts) > 1 and shard is None:
        raise ConfigError(
            f"model.shards is {len(parts)}: name one of them by --shard 0 to {len(parts) - 1}"
        )
    if (shard or 0) >= len(parts):
        raise ConfigError(f"--shard is {shard}, but the role {role} has {len(parts)}, from 0 on")
    return parts[shard or 0]


def _standing(store: CheckpointStore, slot: Slot) -> str:
    try:
        checkpoint = store.load(slot)
    except CheckpointError as error:
        return str(error)
    if checkpoint is None:
        return f"{slot}: no checkpoint"
    return f"{slot}: goes on at offset {checkpoint.next_offset:,}"


def _ready(settings: Config) -> Config:
    """Return the settings for a broker that answers and has all topics."""
    settings = resolve(settings)
    missing = missing_topics(settings)
    if missing:
        raise no_topics(settings, missing)
    return settings


def _supervise(
    config: Path, settings: Config, environment: dict[str, str], workers: int
) -> NoReturn:
    with Supervisor(
        config,
        settings.parts(),
        environment=environment,
        environment_of=lambda name: _own_environment(settings, name),
        tell=_say,
    ) as supervisor:
        supervisor.start(workers)
        pids = ", ".join(f"{name} ({pid})" for name, pid in supervisor.running().items())
        _say(f"Running: {pids}. Ctrl-C stops them.")
        while True:
            supervisor.check()
            time.sleep(0.5)


def _own_environment(settings: Config, name: str) -> dict[str, str]:
    """Return the variables of one worker, for what two workers on a machine cannot share."""
    part, _, number = name.rpartition("-")
    own = {}
    if settings.health.port:
        parts = [str(each) for each in settings.parts()]
        index = parts.index(part) + len(parts) * (int(number) - 1)
        own[f"{ENV_PREFIX}HEALTH__PORT"] = str(settings.health.port + index)
    if instance := settings.kafka.group_instance_id:
        own[f"{ENV_PREFIX}KAFKA__GROUP_INSTANCE_ID"] = f"{instance}-{number}"
    return own


def _say(text: str) -> None:
    console.print(text, markup=False, highlight=False)


@contextmanager
def _broker_may_come_back() -> Iterator[None]:
    """Exit with what tells a supervisor whether to start this again."""
    try:
        yield
    except BrokerError as error:
        Console(stderr=True).print(f"Error: {error}", markup=False, highlight=False)
        again = not isinstance(error, AccessError)
        raise typer.Exit(EXIT_NOT_YET if again else EXIT_REFUSED) from None


def _warn_without_label(source: str, settings: Config, label: str | None) -> None:
    if not source.startswith("river:") and label is None and settings.label.column is None:
        Console(stderr=True, soft_wrap=True).print(
            "No column holds the label (--label, or label.column in the settings): the model will "
            "predict, but learn nothing, and only iPDP can be computed.",
            style="yellow",
            highlight=False,
        )


def _say_embedded(embedded: EmbeddedBroker) -> None:
    _say(
        f"Embedded broker at {embedded.bootstrap_servers}, in memory. Commands in this directory "
        f'find it by kafka.bootstrap_servers = "embedded" (address in {ADDRESS_FILE}).'
    )


def _printed(name: str, value: bytes | None, *, as_json: bool) -> str:
    text = (value or b"null").decode(errors="backslashreplace")
    if as_json:
        return text
    if name not in OUTPUTS:
        return printable(text)
    try:
        return printable(line(OUTPUTS[name].decode(value)))
    except BadRecordError:
        return printable(text)


def _add(history: History, name: str, value: bytes | None, now: float) -> None:
    # what somebody else wrote into our topics is no reason to stop showing them
    with suppress(BadRecordError):
        history.add(OUTPUTS[name].decode(value), now)


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
    )


if __name__ == "__main__":
    main()
