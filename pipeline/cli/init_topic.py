"""``fluxplain init --from-topic``: settings for a topic whose messages are observations."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fluxplain.cli import common as cli
from fluxplain.cli.init_roles import Roles
from fluxplain.config import ConfigError, load_config
from fluxplain.config.topic_settings import TopicSettings
from fluxplain.kafka.embedded import resolve
from fluxplain.kafka.topics.topic_sample import newest_values
from fluxplain.schemas import BadRecordError, Observation
from fluxplain.schemas.wording import plural
from fluxplain.sources import SourceError
from fluxplain.sources.first_rows import MOST_ROWS
from fluxplain.sources.json_sample import JsonSample, as_observation, json_sample
from fluxplain.sources.proposal import Proposal, proposal_of_observations
from fluxplain.stages.intake.validation import ObservationValidator, is_late_label

INPUT = Observation.TOPIC


@dataclass(kw_only=True)
class Topic:
    """Options that name a topic of observations, and its brokers."""

    from_topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC", help="A topic whose messages are JSON objects, instead of a file."
        ),
    ] = None
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Brokers of --from-topic. By default those of the environment variable "
            "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS, else localhost:9092; the other FLUXPLAIN_KAFKA__ "
            "variables hold too.",
        ),
    ] = None

    @property
    def prefix(self) -> str | None:
        """The topics' prefix with which the pipeline reads this topic; None if none does."""
        name = self.from_topic or ""
        return name.removesuffix(INPUT) if name.endswith(INPUT) else None

    def sample(self, template: Path) -> tuple[JsonSample, str]:
        """Return what the messages hold, and the brokers as configured.

        Raises BrokerError, ConfigError or SourceError if there is nothing to read.
        """
        settings = load_config(template, "reader")
        if self.bootstrap_servers is not None:
            settings = settings.on_broker(self.bootstrap_servers)
        topic = self.from_topic or ""
        values = newest_values(resolve(settings), topic, MOST_ROWS)
        return json_sample(topic, values), settings.kafka.bootstrap_servers


def proposal_for(sample: JsonSample, topic: Topic, roles: Roles) -> Proposal:
    """Return what the fields of the messages are; raise SourceError if they are of no use."""
    if not sample.are_observations:
        return roles.proposal(sample.columns)
    for option, given in {"--label": roles.label, "--id": roles.id_, "--ts": roles.ts}.items():
        if given is not None:
            raise ConfigError(
                f"{option} is {given!r}, but the messages of {topic.from_topic!r} are observations "
                f"already, with the fields x, y, id and ts: leave {option} out"
            )
    if roles.no_label:
        return proposal_of_observations(sample.columns, None)
    if not sample.label.values:
        raise SourceError(
            f"no message of {topic.from_topic!r} has a label, y: send some that have it, or give "
            "--no-label to detect anomalies"
        )
    return proposal_of_observations(sample.columns, sample.label)


def say_sample(sample: JsonSample, topic: Topic) -> None:
    """Print what kind of messages were found."""
    kind = "observations" if sample.are_observations else "flat JSON objects"
    cli.say(f"Read {plural(len(sample.objects), 'message')} of {topic.from_topic}: {kind}")
    if sample.refused:
        count = len(sample.refused)
        more = "1 more is no JSON object" if count == 1 else f"{count:,} more are no JSON objects"
        cli.say(f"{more}, and would go to dead-letters; the first one: {sample.refused[0]}")


def say_what_is_needed(sample: JsonSample, topic: Topic, proposal: Proposal) -> None:
    """Print what keeps the pipeline from using the messages as they are, if anything does."""
    default = TopicSettings().prefix + INPUT
    reads = f"The pipeline reads the topic {default} (topics.prefix and {INPUT!r})"
    if not sample.are_observations:
        others = {
            use: name
            for use, name in (("id", proposal.id), ("ts", proposal.ts))
            if name is not None
        }
        fullest = max(sample.objects, key=lambda each: sum(v is not None for v in each.values()))
        example = as_observation(fullest, proposal.features, proposal.label, others)
        cli.say(
            f"{reads}, but no flat objects: a producer must send each one there as\n  {example}"
        )
        return
    if topic.prefix is None:
        cli.say(f"{reads}: send the observations there instead of to {topic.from_topic}.")
    refused = _refused(sample.objects, proposal)
    if refused:
        cli.say(
            f"{len(refused):,} of these messages would go to dead-letters; the first one: "
            f"{refused[0]}"
        )


def _refused(objects: Sequence[dict[str, Any]], proposal: Proposal) -> list[str]:
    """Return why the pipeline would refuse observations, for each that it would."""
    required = () if proposal.has_missing else proposal.features
    check = ObservationValidator(proposal.features, proposal.label_type, required)
    reasons = []
    for fields in objects:
        if is_late_label(fields, proposal.features):
            continue
        try:
            observation = Observation.of(fields)
            check.x(observation)
            check.y(observation)
        except BadRecordError as error:
            reasons.append(str(error))
    return reasons
