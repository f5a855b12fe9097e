"""Before the model: turns messages into valid, labelled and complete observations."""

from collections.abc import Sequence
from dataclasses import replace

from fluxplain.config import Config
from fluxplain.schemas import BadRecordError, Change, Control, LateLabel, Observation, Record
from fluxplain.stages.chain import Sight
from fluxplain.stages.intake.label_classes import LabelClasses
from fluxplain.stages.intake.late_labels import LateLabels
from fluxplain.stages.intake.missing import Coverage, Filler
from fluxplain.stages.intake.sample import ControlMessage, Labelled, Sample, Unusable
from fluxplain.stages.intake.schema_drift import SchemaDrift
from fluxplain.stages.intake.validation import ObservationValidator, decoded_control, is_late_label
from fluxplain.stages.limits import check_key
from fluxplain.stages.origins import Origins
from fluxplain.stages.stage import Message

Decoded = Sample | Labelled | ControlMessage | Unusable


class Intake:
    """Validates messages, joins late labels, fills in missing values, and reports losses."""

    def __init__(self, config: Config, stream: str) -> None:
        policies = {name: config.missing.of(name) for name in config.features}
        required = [name for name, policy in policies.items() if policy == "dead-letter"]
        imputed = [name for name, policy in policies.items() if policy == "impute"]
        alpha = config.explain.alphas[0]
        self._stream = stream
        self._features = config.features
        self._validator = ObservationValidator(config.features, config.label.type, required)
        self._skipped = frozenset(name for name, policy in policies.items() if policy == "skip")
        self.filler = Filler(config.features, config.missing.values, imputed, alpha)
        self.coverage = Coverage(config.members, alpha)
        self.schema_drift = SchemaDrift()
        self.labels = LateLabels(config.label)
        self._classes = LabelClasses(config.label)
        self._labels_topic = config.topic(LateLabel.TOPIC)
        self._control_topic = config.topic(Control.TOPIC)
        joined = map(config.topic, config.inputs("join"))
        self._origins = Origins(stream, joined) if config.is_joined else None

    def decode(self, message: Message) -> Decoded:
        """Return the validated observation, label or control record, or why it is unusable."""
        try:
            return self._validated(message)
        except BadRecordError as error:
            return Unusable(str(error), message)

    def _validated(self, message: Message) -> Decoded:
        check_key(message)
        topic = message.origin[0] if self._origins is not None else ""
        if topic == self._control_topic:
            return ControlMessage(decoded_control(message), message)
        fields = message.fields()
        if message.decoded is not None:
            message = replace(message, decoded=None)  # it may be kept, and is large
        if topic == self._labels_topic or is_late_label(fields, self._features):
            label = self._validator.late(LateLabel.of(fields))
            self.labels.check_wait()
            return Labelled(label, message)
        return self._sample(Observation.of(fields), message)

    def _sample(self, observation: Observation, message: Message) -> Sample:
        x, y = self._validator.x(observation), self._validator.y(observation)
        given, features = observation.x, self._features
        missing = [name for name in features if name not in x] if len(x) < len(features) else ()
        others: Sequence[str] = ()
        if len(given) > len(x):
            others = [n for n, v in given.items() if v is not None and n not in features]
        about = observation.id, observation.ts
        return Sample(message.offset, x, y, *about, message, missing, others)

    def take(self, decoded: Decoded, records: list[Record]) -> Sample | ControlMessage | None:
        """Return the sample or control record that the model stage must process now, if any.

        Where topics are joined, a message taken before is ignored (the join role repeats some after
        a crash); a late one is taken. Notices and dead letters are added to ``records``. Raises
        ``BadRecordError`` if the message cannot be used.
        """
        if not self._is_new(decoded.message, records):
            return None
        if isinstance(decoded, ControlMessage):
            return decoded
        if isinstance(decoded, Unusable):
            raise BadRecordError(decoded.reason)
        y = decoded.y if isinstance(decoded, Sample) else decoded.label.y
        if y is not None:
            self._classes.check(y)
        is_observation = isinstance(decoded, Sample)
        records += self.labels.advance(decoded.message, is_observation=is_observation)
        if isinstance(decoded, Labelled):
            sample = self._labelled(decoded, records)
        else:
            y = self.labels.observe(decoded.id, decoded.y, records)
            sample = self._completed(replace(decoded, y=y), records)
        if sample is not None and sample.y is not None and not sample.is_skipped:
            self._classes.take(sample.y)  # only now: labels of nothing take no place
        return sample

    def _is_new(self, message: Message, records: list[Record]) -> bool:
        if self._origins is None:
            return True
        try:
            sight, gap = self._origins.take(message)
        except BadRecordError as error:
            # the header with its origin is forged, so the dead letter must not carry it
            records.append(replace(message, headers={}).dead_letter(message.flaw or str(error)))
            return False
        records += [] if gap is None else [gap]
        return sight is not Sight.SEEN

    def _labelled(self, labelled: Labelled, records: list[Record]) -> Sample | None:
        """Return the observation that waited for this label, if any."""
        label, message = labelled.label, labelled.message
        waited = self.labels.join(labelled, records)
        if waited is None:
            return None
        ts = waited.ts if label.ts is None else label.ts
        return Sample(message.offset, waited.x, label.y, label.id, ts, message, unlabelled=waited)

    def _completed(self, sample: Sample, records: list[Record]) -> Sample:
        """Return the observation with a value for each feature, or marked as skipped."""
        changes = self.schema_drift.see(sample.missing, sample.others)
        records += [
            Change.notice(
                kind="schema",
                stream=self._stream,
                seq=sample.seq,
                ts=sample.ts,
                feature=name,
                detail=detail,
            )
            for name, detail in changes.items()
        ]
        self.coverage.update(sample.missing)
        if not self._skipped.isdisjoint(sample.missing):
            self.labels.pass_over(sample.id)
            return replace(sample, is_skipped=True)
        self.filler.observe(sample.x)
        if not sample.missing:
            return sample
        return replace(sample, x=self.filler.filled(sample.x, sample.missing, sample.others))
