"""Findings about the model: can it be explained, how, and does it give the same results again."""

import hashlib
import os
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import orjson

from fluxplain import evaluate, stages
from fluxplain.cli.doctor.findings import Finding, ok
from fluxplain.cli.model_title import model_title
from fluxplain.config import Config, ConfigError
from fluxplain.config.load import check_references
from fluxplain.schemas import BadRecordError, DeadLetter, Observation, Record, stream_name
from fluxplain.schemas.wording import plural
from fluxplain.stages.evaluated import Evaluated, evaluations

RECORDS = 150
"""Observations of a trial: more than fill a reservoir, so the model is explained too."""

OTHER_SEED_S = 120.0
"""Seconds that a trial in another process may take."""

ONE_BY_ONE = (
    "That is slow for many features; a `predict_many` of your model takes them in one call. "
    "`--measure FILE` tells what it costs"
)

HASH_SEED = "PYTHONHASHSEED"

NO_LABEL = Finding(
    "problem",
    "no observation of the file has a label, so the model would never learn",
    "Name the column with --label, or in label.column",
)

FORGETS = Finding(
    "problem",
    "a model that was pickled and comes back gives other results",
    "After a restart the pipeline could not go on as before: let the model pickle all of its state",
)

DIFFERS = Finding(
    "problem",
    "a model that is made again gives other results on the same observations",
    "Results could not be repeated: set the seed of whatever it draws, and let it depend on "
    "nothing but its seed and its observations",
)


def model_findings(config: Config, path: Path, values: Sequence[bytes]) -> Iterator[Finding]:
    """Check the code that the settings name, the model's evaluators, and a trial on observations.

    Without ``values`` the trial is on made-up ones.
    """
    check_references(config)
    yield from _evaluator(config, "")
    for name, own in config.own_streams.items():
        yield from _evaluator(own, f"stream {name}: ")
    yield from _trial(config, path, values)


def _evaluator(config: Config, of: str) -> Iterator[Finding]:
    model = config.make_model()
    choice = evaluate.choose(model, config.model.evaluator)
    yield ok(f"{of}model: {model_title(config, model)}")
    what = f"{of}evaluator: {choice.kind} ({choice.reason})"
    yield Finding("warning", what, ONE_BY_ONE) if choice.kind == "generic" else ok(what)


def _trial(config: Config, path: Path, values: Sequence[bytes]) -> Iterator[Finding]:
    given = [*values[:RECORDS]]
    what = (
        f"{plural(len(given), 'observation')} of the file"
        if given
        else f"{RECORDS} made-up observations"
    )
    given = given or made_up(config)
    if config.label.type != "none" and not any(map(_has_label, given)):
        yield NO_LABEL
    records, state = _run(config, given)
    failed = [each for each in records if isinstance(each, DeadLetter)]
    if failed:
        remedy = "" if values else "Made-up values may not suit it: try yours, with --measure FILE"
        none_used = bool(values) and len(failed) >= len(given)
        counted = f"{len(failed)} failures on {what}, the last one: {failed[-1].reason}"
        yield Finding("problem" if none_used else "warning", counted, remedy)
        if len(failed) >= len(given):
            return
    else:
        yield ok(f"the model predicts and learns: {what}, without a failure")
    once = digest(records)
    if digest(_run(config, given, resumes=True)[0]) != once:
        is_repeated = digest(_run(config, given)[0]) == once
        yield FORGETS if is_repeated else DIFFERS
        return
    yield ok(f"pickled ({state:,} bytes with its samples), it comes back and gives the same again")
    yield _in_another_process(path, given, once)


def _has_label(value: bytes) -> bool:
    try:
        return Observation.decode(value).y is not None
    except BadRecordError:
        return False


def _in_another_process(path: Path, values: Sequence[bytes], once: str) -> Finding:
    """Repeat the trial where sets of texts have another order."""
    own = "1" if os.environ.get(HASH_SEED) != "1" else "2"
    module = "fluxplain.cli.doctor.trial"
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(b"\n".join(values))
        file.flush()
        try:
            ended = subprocess.run(  # noqa: S603  our own command line
                [sys.executable, "-m", module, str(path), file.name],
                env={**os.environ, HASH_SEED: own},
                capture_output=True,
                text=True,
                timeout=OTHER_SEED_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            what = f"the model's trial took more than {OTHER_SEED_S:.0f} s in another process"
            return Finding("warning", what, "`--measure FILE` tells how slow it is")
    if ended.returncode:
        lines = ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"]
        return Finding("problem", f"the model fails in another process: {lines[-1]}")
    if (ended.stdout.split() or [""])[-1] != once:  # the model may print, too
        return Finding(
            "warning",
            f"in another process, with another {HASH_SEED}, the model gives other results",
            f"Workers repeat results only with the same {HASH_SEED}, by default 0: set no other, "
            "and let the model depend on nothing but its seed and its records",
        )
    return ok("another process gives the same results: the model is deterministic")


def made_up(config: Config) -> list[bytes]:
    """Return observations with values and labels at random, always the same ones."""
    rng = random.Random(0)
    labels: dict[str, Callable[[], object]] = {
        "boolean": lambda: rng.random() < 0.5,
        "integer": lambda: rng.randrange(2),
        "string": lambda: rng.choice("ab"),
        "number": lambda: rng.gauss(0.0, 1.0),
    }
    label = labels.get(config.label.type)
    found = []
    for _ in range(RECORDS):
        x = {
            name: rng.gauss(0.0, 1.0) if kind == "numeric" else rng.choice("ab")
            for name, kind in config.features.items()
        }
        found.append(orjson.dumps({"x": x, **({} if label is None else {"y": label()})}))
    return found


def digest(records: Sequence[Record]) -> str:
    """Return a digest of everything that a trial publishes."""
    whole = hashlib.sha256()
    for each in records:
        for record in evaluations([each]) if isinstance(each, Evaluated) else [each]:
            whole.update(record.encode() or b"")
    return whole.hexdigest()


def trial_records(config: Config, values: Sequence[bytes]) -> Sequence[Record]:
    """Return the records that the model role publishes about observations."""
    return _run(config, values)[0]


def pickled(stage: stages.Stage) -> bytes:
    """Return a state as a checkpoint has it; raise ``ConfigError`` if the model cannot be."""
    try:
        return pickle.dumps(stage)
    except Exception as error:
        raise ConfigError(
            f"the model cannot be pickled once it has learned, so it could not be checkpointed: "
            f"{type(error).__name__}: {error}"
        ) from error


def _unpickled(state: bytes) -> stages.Stage:
    try:
        stage: stages.Stage = pickle.loads(state)  # noqa: S301  it was pickled here
    except Exception as error:
        raise ConfigError(
            f"the model cannot be unpickled once it has learned, so no worker could resume: "
            f"{type(error).__name__}: {error}"
        ) from error
    return stage


def _run(
    config: Config, values: Sequence[bytes], *, resumes: bool = False
) -> tuple[list[Record], int]:
    """Return the records, and the size of the pickled state before the last tenth of them.

    With ``resumes`` the stage continues from its pickled state there.
    """
    topic = config.topic(config.source)
    stage: stages.Stage = stages.ModelStage(config.of_stream(0), stream_name(topic, 0))
    records: list[Record] = []
    state = b""
    for offset, message in enumerate(_messages(config, values)):
        if offset == len(values) * 9 // 10:
            state = pickled(stage)
            if resumes:
                stage = _unpickled(state)
        records += stages.process(stage, message)
    return records, len(state)


def _messages(config: Config, values: Sequence[bytes]) -> Iterator[stages.Message]:
    """Yield observations as the model role reads them: where topics are joined, passed on."""
    join = stages.JoinStage() if config.is_joined else None
    for offset, value in enumerate(values):
        message = stages.Message(config.topic("features"), 0, offset, None, value)
        if join is not None:
            headers = join.step(message)[0].message_headers()
            place = config.topic(config.source), 0, offset
            message = stages.Message(*place, None, value, headers=headers)
        yield message
