"""Gives the reasons for the model's output on chosen observations."""

import hashlib
import random
from collections.abc import Collection, Iterable, Sequence

from fluxplain.config import Config
from fluxplain.evaluate import Encoding, Evaluator, Observed, Table
from fluxplain.evaluate.evaluator import Label
from fluxplain.explain.output_reasons import Background, OutputReasons
from fluxplain.explain.shapley import Contributions, Effort
from fluxplain.schemas import Reasons
from fluxplain.schemas.asked_ids import AskedIds
from fluxplain.schemas.record import MAX_RECORD_BYTES, Target
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.limits import NUMBER_BYTES, text_bytes
from fluxplain.stages.predictions import predicted

Named = Sequence[tuple[str, float]]
"""Contributions with their names."""


class StreamReasons:
    """Chooses observations of a stream, and explains the model's output on them.

    The random numbers of an observation depend only on how many came before, so that others which
    get reasons, and messages that are none, change nothing. If one is asked about, ``asked_seq``,
    no other gets any.
    """

    def __init__(self, config: Config, stream: str) -> None:
        settings = config.reasons
        self._stream = stream
        self._settings = settings
        self._effort = Effort(settings.error, settings.most_inputs)
        self._seed = f"{config.seed}/{stream}/reasons"
        rng = random.Random(self._seed)
        self._players = config.players
        size, warm_up = settings.reservoir_size, settings.warm_up
        self._background = Background(self._players, size, rng, warm_up)
        self._ids = AskedIds(settings.ids)
        self._previous_seq: int | None = None
        self._skipped = self._count = 0
        self.asked_seq: int | None = None

    def prepare(self, encoding: Encoding) -> None:
        """Encode the stored observations, which may extend the encoding."""
        self._background.prepare(encoding)

    def of(
        self,
        sample: Sample,
        observed: Observed,
        prediction: Table,
        evaluator: Evaluator,
        model_version: str | None,
    ) -> list[Reasons]:
        """Return the reasons for the output on an observation, one for each explained label.

        There are none if it is not chosen, or too few observations are stored. Raises what the
        model raises.
        """
        seed = f"{self._seed}/{self._count}"
        self._count += 1
        self._skipped += 1
        if not self._is_drawn(sample, seed):
            return []
        rng, said = random.Random(seed), predicted(prediction.outputs()[0])
        labels = self._chosen(sample, prediction, said)
        found: Contributions | None = None
        if labels:
            found = self._background.contributions(
                evaluator, observed, prediction, self._effort, rng
            )
        if found is None:
            return []
        reasons = [self._record(sample, found, label, said, model_version) for label in labels]
        self._previous_seq, self._skipped = sample.seq, 0
        return reasons

    def store(self, observed: Observed) -> None:
        """Keep an observation as part of the background of later ones."""
        self._background.store(observed)

    def _is_listed(self, sample: Sample) -> bool:
        if self.asked_seq is not None:
            return sample.seq == self.asked_seq
        return sample.id in self._ids

    def _is_drawn(self, sample: Sample, seed: str) -> bool:
        """Return whether an observation is among the share, before anything else is computed."""
        is_drawn = self.asked_seq is None and _uniform(seed) < self._settings.share
        return is_drawn or self._is_listed(sample)

    def _chosen(self, sample: Sample, prediction: Table, said: Target | None) -> list[Label | None]:
        """Return the labels whose output is explained; none if the observation is not chosen."""
        settings = self._settings
        labels = _explained(settings.labels, prediction, said)
        if self._is_listed(sample):
            return labels
        if settings.predicted and said not in settings.predicted:
            return []
        low = -float("inf") if settings.at_least is None else settings.at_least
        high = float("inf") if settings.at_most is None else settings.at_most
        outputs = dict(zip(prediction.labels, prediction.numbers[0].tolist(), strict=True))
        return [label for label in labels if low <= outputs[label] <= high]

    def _record(
        self,
        sample: Sample,
        found: Contributions,
        label: Label | None,
        said: Target | None,
        model_version: str | None,
    ) -> Reasons:
        reasons = OutputReasons.of(found, self._players.names, label)
        largest = dict(self._fitting(sample, reasons.largest(self._settings.names)))
        others = [c for name, c in reasons.contributions.items() if name not in largest]
        return Reasons(
            stream=self._stream,
            seq=sample.seq,
            previous_seq=self._previous_seq,
            skipped=self._skipped - 1,
            id=sample.id,
            ts=sample.ts,
            prediction=said,
            label=label,
            output=reasons.output,
            base=reasons.base,
            names=list(largest),
            contributions=list(largest.values()),
            std_errors=[reasons.std_errors[name] for name in largest],
            values=[sample.x.get(name) for name in largest],
            rest=sum(others, 0.0),
            way=reasons.way,
            missing=self._imputed(sample, largest) or None,
            model_version=model_version,
        )

    def _fitting(self, sample: Sample, largest: Named) -> Named:
        """Return the first of the contributions, as many as surely fit into a message."""
        while True:
            names = [name for name, _ in largest]
            texts = [text for name in names for text in (name, sample.x.get(name, 0))]
            texts += self._imputed(sample, names)
            if NUMBER_BYTES * 3 * len(largest) + text_bytes(texts) <= MAX_RECORD_BYTES // 2:
                return largest
            largest = largest[: len(largest) // 2]

    def _imputed(self, sample: Sample, names: Collection[str]) -> list[str]:
        """Return the features among the players, and members of groups, whose value was imputed."""
        if not sample.missing:
            return []
        members = dict(zip(self._players.names, self._players.members, strict=True))
        return [each for name in names for each in members[name] if each in sample.missing]


def _uniform(seed: str) -> float:
    """Return a number from 0 to below 1; to seed a generator for it takes ten times as long."""
    digest = hashlib.blake2b(seed.encode(), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / 2.0**53


def _explained(
    labels: str | Collection[Label], prediction: Table, said: Target | None
) -> list[Label | None]:
    """Return the labels to explain out of those that the model knows."""
    known: Iterable[Label | None] = prediction.labels
    if prediction.labels == (None,) or labels == "all":
        return list(known)
    if labels == "predicted":
        return [label for label in known if label == said][:1]
    return [label for label in known if label in labels]
