"""Findings about the broker, and about the pipeline that runs there."""

import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import ClusterMetadata

from fluxplain.cli.autocorrelation_check import autocorrelation_warnings
from fluxplain.cli.doctor.findings import Check, Finding, examine, ok
from fluxplain.cli.doctor.topic_findings import topic_findings
from fluxplain.cli.setup import fingerprint_here, resumption
from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints.checkpoint import CheckpointError
from fluxplain.kafka.checkpoints.configured import open_store, slots
from fluxplain.kafka.client import asking_consumer, cluster, refusal
from fluxplain.kafka.embedded import is_embedded_cluster, resolve
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import ADOPT
from fluxplain.kafka.registry.codec import check_registry
from fluxplain.kafka.timeouts import REQUEST_S
from fluxplain.kafka.topics.create import topic_specs
from fluxplain.kafka.topics.describe import Described
from fluxplain.kafka.topics.progress import GroupOffsets
from fluxplain.schemas import INPUTS, Note
from fluxplain.schemas.wording import plural

SKEW_S = 60.0
"""Seconds that a record's time may be ahead of this machine's clock."""


def broker_findings(settings: Config) -> Iterator[Finding]:
    """Check the broker, topics, rights, clock, registered settings, checkpoints and groups."""
    settings = resolve(settings)
    metadata = cluster(settings)
    embedded = is_embedded_cluster(metadata)
    kind = "embedded, in memory" if embedded else f"cluster {metadata.cluster_id}"
    servers = settings.kafka.bootstrap_servers
    yield ok(f"broker: {len(metadata.brokers)} at {servers} ({kind})")
    checks: list[Check] = [partial(topic_findings, settings, metadata)]
    if all(spec.name in metadata.topics for spec in topic_specs(settings)):
        of_kafka: list[Check] = [partial(_rights, settings), partial(_clock, settings, metadata)]
        checks += [] if embedded else of_kafka
        checks += [
            partial(_registered, settings),
            partial(_checkpoints, settings, metadata),
            partial(_groups, settings, embedded=embedded),
            partial(_autocorrelation, settings),
        ]
    if settings.registry.url is not None:
        checks.append(partial(_registry, settings))
    yield from examine(checks)


def _rights(config: Config) -> Iterator[Finding]:
    """Compare this client's rights with what all roles need together."""
    described, lacking = Described(config), []
    users = {config.topic(topic) for topic in (*(each.TOPIC for each in INPUTS), Note.TOPIC)}
    for topic, rights in described.rights([spec.name for spec in topic_specs(config)]).items():
        needed = {"READ"} if topic in users else {"READ", "WRITE"}
        lacking += [f"{right.title()} on the topic {topic}" for right in sorted(needed - rights)]
    groups = [config.group(replica) for replica in config.replicas()]
    for group, (_, rights) in described.groups(groups).items():
        lacking += [] if "READ" in rights else [f"Read on the group {group}"]
    if lacking:
        remedy = "Grant it to the user of each role that needs it: see ACLs in deploy/README.md"
        yield Finding("warning", f"rights: this user lacks {', '.join(lacking)}", remedy)
    else:
        yield ok("rights: this user may read and write all topics, and read as all groups")


def _clock(config: Config, metadata: ClusterMetadata) -> Iterator[Finding]:
    """Look for records that are later than this machine's clock."""
    topic = config.topic("features")
    later = int((time.time() + SKEW_S) * 1000)
    asked = [TopicPartition(topic, each, later) for each in metadata.topics[topic].partitions]
    with closing(asking_consumer(config, config.group("model"))) as consumer:
        try:
            found = consumer.offsets_for_times(asked, timeout=REQUEST_S)
        except KafkaException as error:
            raise refusal(config, "cannot ask for times", error.args[0]) from None
    ahead = [
        f"{each.topic}-{each.partition} at {each.offset}" for each in found if each.offset >= 0
    ]
    if ahead:
        what = f"clock: records are more than {SKEW_S:.0f} s ahead of this machine: {ahead[0]}"
        yield Finding("warning", what, "Synchronize this machine's clock, or the producer's")
    else:
        yield ok("clock: no observation is ahead of this machine's clock")


def _registered(config: Config) -> Iterator[Finding]:
    """Compare the settings with those that the pipeline is registered with."""
    with closing(Register(config)) as register:
        registered = register.read()
    if registered.fingerprint is None:
        yield ok("settings: none are registered yet, the first worker registers its own")
        return
    here = fingerprint_here(config)
    differences = registered.fingerprint.differences(here)
    if differences:
        only_versions = not registered.fingerprint.other_settings(here)
        command = ADOPT if only_versions else "fluxplain settings replace"
        remedy = (
            f"Workers with these {'versions' if only_versions else 'settings'} would refuse to "
            "start: use the registered ones or another topics.prefix, or stop all workers and run "
            f"`{command}`"
        )
        what = f"settings: those registered differ in {', '.join(differences)}"
        yield Finding("problem", what, remedy)
    else:
        yield ok("settings: those of the file are the registered ones")


def _checkpoints(config: Config, metadata: ClusterMetadata) -> Iterator[Finding]:
    """Check that every role can resume."""
    store = open_store(config, metadata)
    resumes = []
    for slot in slots(config):
        try:
            resumes.append(resumption(store, slot))
        except CheckpointError as error:
            yield Finding("problem", str(error))
    saved = [each for each in resumes if "resumes" in each]
    yield ok(resumable(len(saved), len(resumes)))


def resumable(saved: int, partitions: int) -> str:
    """Return how many of the input partitions have a checkpoint, as a finding."""
    if not saved:
        return "checkpoints: none yet, as is usual before the first start"
    verb = "has" if saved == 1 else "have"
    return f"checkpoints: {saved} of {plural(partitions, 'input partition')} {verb} one"


def _groups(config: Config, *, embedded: bool) -> Iterator[Finding]:
    """Compare how far each role is with what there is to read."""
    replicas = config.replicas()
    members: dict[str, int | None] = dict.fromkeys([config.group(each) for each in replicas])
    if not embedded:
        described = Described(config).groups([*members])
        members = {group: count for group, (count, _) in described.items()}
    for replica in replicas:
        lag = sum(_lags(config, replica))
        count = members[config.group(replica)]
        workers = "" if count is None else f", {plural(count, 'worker')}"
        what = f"{replica}: {plural(lag, 'message')} to read{workers}"
        if lag and count == 0:
            yield Finding("warning", what, f"Start one: fluxplain worker --role {replica.role}")
        else:
            yield ok(what)


def _lags(config: Config, replica: Replica) -> Iterator[int]:
    for topic in config.inputs(replica.role):
        with closing(GroupOffsets(config, replica, topic)) as offsets:
            yield offsets.lag()


def _registry(config: Config) -> Iterator[Finding]:
    check_registry(config)
    yield ok(f"registry: at {config.registry.url}")


def _autocorrelation(config: Config) -> Iterator[Finding]:
    for warning in autocorrelation_warnings(config):
        yield Finding("warning", warning)
