"""Workers resume under other versions, with what was learned and without a mixture of results."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from fluxplain.agents import make_stage
from fluxplain.cli.supervisor import WorkerRefusedError
from fluxplain.config import Config, ConfigError
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.checkpoints.adoption import Adoption
from fluxplain.kafka.client import cluster
from fluxplain.kafka.exits import EXIT_REFUSED
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import Registered
from fluxplain.local import LocalPipeline
from fluxplain.stages import Message
from tests.kit.in_process import Ended
from tests.kit.kafka_pipeline import (
    JOINED,
    KafkaPipeline,
    Published,
    Start,
    StartFaulty,
    assert_same,
    identity,
    records_of,
    reference,
    reference_of,
)
from tests.kit.other_bits import VARIABLE
from tests.kit.other_versions import installed
from tests.kit.preloaded import AHEAD, Preloaded
from tests.kit.settings import SETTINGS, Configure, topic_store
from tests.kit.streams import observations

EXIT_MISTAKE = 2

OTHER_BITS = {VARIABLE: "1.0000001"}

VALUES = observations(200)


@pytest.fixture
def tables() -> dict[str, Any]:
    return {"model": {"factory": "tests.kit.other_bits:Tree"}}


@pytest.fixture
def upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, str]]:
    """Install another version of River here, and return the variable for workers to find it."""

    def install(version: str) -> dict[str, str]:
        folder = installed(tmp_path / f"river {version}", "river", version)
        monkeypatch.syspath_prepend(folder)
        return {AHEAD: str(folder)}

    return install


def registered(config: Config) -> Registered:
    with closing(Register(config)) as register:
        return register.read()


def adopt(pipeline: KafkaPipeline, *words: str) -> Ended:
    ended = pipeline.run("checkpoints", "adopt", "--yes", *words)
    assert not ended.returncode, ended.stderr
    return ended


def refusal(pipeline: KafkaPipeline, *words: str) -> str:
    ended = pipeline.run("checkpoints", "adopt", *words)
    assert ended.returncode, ended.stdout
    assert "Traceback" not in ended.stderr
    return ended.stderr


def reference_across(
    config: Config, parts: Iterable[tuple[Sequence[bytes], Life, Mapping[str, str]]]
) -> Published:
    """Return what one pipeline publishes for parts of its stream, in lives and variables."""
    published: Published = {}
    pipeline, seq = LocalPipeline(config), 0
    for values, life, variables in parts:
        with pytest.MonkeyPatch.context() as patch:
            for name, each in variables.items():
                patch.setenv(name, each)
            for value in values:
                message = Message(config.topic(config.source), 0, seq, None, value)
                for record in pipeline.take(message):
                    encoded = life.of(record, "model").encode()
                    published.setdefault(identity(record.TOPIC, encoded), set()).add(encoded)
                seq += 1
    return published


def explained(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], set[int]]:
    """Return (feature, method) → the observations in explanations."""
    found: dict[tuple[str, str], set[int]] = {}
    for each in records:
        found.setdefault((each["feature"], each["method"]), set()).update(each["seqs"])
    return found


def without_notices(pipeline: KafkaPipeline) -> tuple[Published, list[dict[str, Any]]]:
    """Return what was published but for notices of other versions, and these."""
    notices = {key for key in pipeline.published if key[0] == "changes" and key[2] == "upgrade"}
    rest = {key: each for key, each in pipeline.published.items() if key not in notices}
    return rest, pipeline.changes("upgrade")


def test_with_the_same_bits_they_resume_as_if_nothing_had_changed(
    start: Start, upgraded: Callable[[str], dict[str, str]], configure: Configure
) -> None:
    configure(model=SETTINGS["model"])
    with start() as pipeline:
        pipeline.process(VALUES[:100])
    pipeline.send(VALUES[100:101])
    newer, status = upgraded("9.9.9"), f"{EXIT_REFUSED}"
    with start(environment=newer) as refused, pytest.raises(WorkerRefusedError, match=status):
        refused.wait_until_idle()
    assert "registered: 0." in refused.log
    assert "here: 9.9.9" in refused.log
    assert "fluxplain checkpoints adopt" in refused.log
    found = adopt(refused).stdout
    assert f"model {pipeline.config.topic('features')}-0: the same bits after 100 messages" in found
    with start(environment=newer) as again:
        again.process(VALUES[101:])
        again.finish(VALUES)
    assert not again.changes("upgrade")
    assert "resumes at offset 100" in again.log


def test_with_other_bits_they_resume_in_another_incarnation_and_say_so_once(
    start: Start, upgraded: Callable[[str], dict[str, str]]
) -> None:
    with start() as pipeline:
        pipeline.process(VALUES[:100])
    newer = {**upgraded("9.9.9"), **OTHER_BITS}
    with start(roles=(), environment=newer) as stopped:
        assert "other bits after 100 messages" in adopt(stopped).stdout
    with start(environment=newer) as again:
        again.process(VALUES[100:150])
        again.kill("model")
        again.process(VALUES[150:])
    published, [notice] = without_notices(again)
    [number] = registered(again.config).adopted
    parts = [
        (VALUES[:100], Life(), {}),
        (VALUES[100:], Life(cold_start=number), OTHER_BITS),
    ]
    assert_same(published, reference_across(again.config, parts))
    assert published != reference(again.config, VALUES)
    assert notice["stream"] == f"{again.config.topic('features')}-0"
    assert (notice["seq"], notice["incarnation"]) == (100, str(number))
    assert "river from 0." in notice["detail"]
    assert "to 9.9.9" in notice["detail"]


def test_what_a_role_had_not_read_is_not_lost(
    start: Start, upgraded: Callable[[str], dict[str, str]]
) -> None:
    with start() as pipeline:
        pipeline.process(VALUES[:80])
    pipeline.send(VALUES[80:120])
    with start(roles=("model",)) as ahead:
        ahead.wait_until(lambda: ahead.committed("model") == 120)
    newer = {**upgraded("9.9.9"), **OTHER_BITS}
    with start(roles=(), environment=newer) as stopped:
        adopt(stopped)
    with start(environment=newer) as again:
        again.process(VALUES[120:])
    [number] = registered(again.config).adopted
    whole = records_of(reference(again.config, VALUES), "explanations")
    assert explained(again.records("explanations")) == explained(whole)
    assert not again.changes("gap")
    lives = [each["incarnation"] for each in again.records("explanations")]
    assert set(lives) == {"1", f"1/{number}", str(number)}
    assert lives == sorted(lives, key=["1", f"1/{number}", str(number)].index)
    assert all(len(values) == 1 for values in again.published.values())


def test_where_topics_are_joined_and_the_model_has_shards_there_is_one_notice(
    start: Start, upgraded: Callable[[str], dict[str, str]], configure: Configure
) -> None:
    tree = {"factory": "tests.kit.other_bits:Tree", "shards": 2}
    configure(model=tree, control={"topic": True})
    with start(roles=JOINED) as pipeline:
        pipeline.send(VALUES[:100])
        pipeline.wait_until_idle()
    newer = {**upgraded("9.9.9"), **OTHER_BITS}
    with start(roles=(), environment=newer) as stopped:
        found = adopt(stopped).stdout
    prefix = pipeline.config.topics.prefix
    assert f"join {prefix}features-0: the same bits after 100 messages" in found
    for shard in ("model-0of2", "model-1of2"):
        assert f"{shard} {prefix}observations-0: other bits after 100 messages" in found
    with start(roles=JOINED, environment=newer) as again:
        again.send(VALUES[100:])
        again.wait_until_idle()
    _, [notice] = without_notices(again)
    assert (notice["stream"], notice["seq"]) == (f"{prefix}observations-0", 100)
    assert [each["seq"] for each in again.records("predictions")] == [*range(200)]
    whole = records_of(reference_of(again.config, again.joined(0)), "explanations")
    assert explained(again.records("explanations")) == explained(whole)
    assert all(len(values) == 1 for values in again.published.values())


@pytest.mark.embedded
@pytest.mark.parametrize("step", ["all-replays", "the-record"])
def test_a_command_that_is_killed_can_be_run_again(
    start: Start,
    upgraded: Callable[[str], dict[str, str]],
    preloaded: Preloaded,
    config_path: Path,
    step: str,
) -> None:
    with start() as pipeline:
        pipeline.process(VALUES[:100])
    newer = {**upgraded("9.9.9"), **OTHER_BITS}
    words = ("checkpoints", "adopt", "--yes", "--config", str(config_path))
    command = [sys.executable, "-m", "tests.kit.faulty_adoption", step, *words]
    with start(roles=(), environment=newer) as stopped, stopped.log_path.open("ab") as log:
        own = {**os.environ, **stopped.environment}
        assert preloaded.start(command, own, log).wait(120) == -signal.SIGKILL
        is_done = step == "the-record"
        assert len(registered(stopped.config).adopted) == is_done
        assert ("nothing to adopt" in adopt(stopped).stdout) == is_done
    with start(environment=newer) as again:
        again.process(VALUES[100:])
    published, [_] = without_notices(again)
    [number] = registered(again.config).adopted
    parts = [(VALUES[:100], Life(), {}), (VALUES[100:], Life(cold_start=number), OTHER_BITS)]
    assert_same(published, reference_across(again.config, parts))


@pytest.mark.embedded
@pytest.mark.parametrize("role", ["model", "explainer"])
def test_a_state_that_was_saved_after_its_replay_is_not_adopted(
    start: Start, upgraded: Callable[[str], dict[str, str]], role: Role
) -> None:
    with start() as pipeline:
        pipeline.process(VALUES[:60])
    upgraded("9.9.9")
    with start(roles=()) as stopped:
        checkpoint = stopped.config.checkpoint.model_copy(update={"directory": stopped.checkpoints})
        config = stopped.config.model_copy(update={"checkpoint": checkpoint})
        before = registered(config)
        adoption = Adoption(config, cluster(config), before)
        proofs = [*adoption.proofs(partial(make_stage, config), 20, lambda each, *_: each)]
    pipeline.send(VALUES[60:100])
    with start(roles=("model", role)) as again:
        again.wait_until(lambda: again.committed("model") == 100)
    with pytest.raises(ConfigError, match=f"a worker has run since the replay of {role} "):
        adoption.register([each for each in proofs if each.slot.role == role])
    assert registered(config).versions == before.versions


@pytest.mark.embedded
def test_the_notice_is_the_same_if_its_worker_dies_before_the_state_is_saved(
    start: Start, start_faulty: StartFaulty, upgraded: Callable[[str], dict[str, str]]
) -> None:
    with start() as pipeline:
        pipeline.process(VALUES[:100])
    newer = {**upgraded("9.9.9"), **OTHER_BITS}
    with start(roles=(), environment=newer) as stopped:
        adopt(stopped)
    with start(roles=("explainer", "drift"), environment=newer) as again:
        faulty = start_faulty(again, "dies-having-told-of-an-upgrade")
        assert faulty.wait(60) == -signal.SIGKILL
        again.workers.add(Replica("model"))
        again.process(VALUES[100:])
    published, [notice] = without_notices(again)
    key = identity("changes", orjson.dumps(notice))
    assert len(again.published[key]) == 1
    [number] = registered(again.config).adopted
    parts = [(VALUES[:100], Life(), {}), (VALUES[100:], Life(cold_start=number), OTHER_BITS)]
    assert_same(published, reference_across(again.config, parts))


def test_without_checkpoints_nothing_is_adopted_and_nothing_of_before_is_repeated(
    start: Start, upgraded: Callable[[str], dict[str, str]]
) -> None:
    with start() as pipeline:
        pipeline.process(VALUES[:60])
    newer = {**upgraded("9.9.9"), **OTHER_BITS}
    with start(roles=(), environment=newer) as stopped:
        config = pipeline.config
        assert "not proven: only" not in adopt(stopped).stdout
        removed = stopped.run("checkpoints", "remove", "--yes")
        assert not removed.returncode
    with start(environment=newer) as again:
        again.process(VALUES[60:])
    cold = {each["stream"]: each for each in again.changes("cold-start")}
    notice = cold[f"{config.topic('features')}-0"]
    assert notice["seq"] == 0
    assert int(notice["incarnation"]) > max(registered(config).adopted)
    assert "came from versions with other results" in notice["detail"]
    assert all(len(values) == 1 for values in again.published.values())


def test_a_partition_that_was_empty_starts_as_in_a_new_pipeline(
    start: Start, upgraded: Callable[[str], dict[str, str]]
) -> None:
    with start() as pipeline:
        pipeline.process(VALUES[:60])
    newer = {**upgraded("9.9.9"), **OTHER_BITS}
    with start(roles=(), environment=newer) as stopped:
        adopt(stopped)
    with start(environment=newer) as again:
        again.send(VALUES[:20], partition=1)
        again.wait_until_idle()
    assert not again.changes("cold-start")
    stream = f"{again.config.topic('features')}-1"
    found = [each for each in again.records("predictions") if each["stream"] == stream]
    assert [(each["seq"], each["incarnation"]) for each in found] == [(n, "1") for n in range(20)]


def test_nothing_is_adopted_where_it_must_not(
    start: Start,
    upgraded: Callable[[str], dict[str, str]],
    configure: Configure,
    tmp_path: Path,
) -> None:
    with start(roles=()) as pipeline:
        assert "no settings are registered yet" in refusal(pipeline, "--yes")
    key = {"key_file": topic_store(tmp_path)["key_file"]}
    configure(checkpoint=key)
    with start() as pipeline:
        pipeline.process(VALUES[:60])
        assert "nothing to adopt" in adopt(pipeline).stdout
    with start(roles=(), environment=upgraded("9.9.9")) as stopped:
        before = registered(stopped.config)
        exported = stopped.run("model", "export", "--out", str(tmp_path / "model.pickle"))
        assert exported.returncode == EXIT_MISTAKE
        assert "fluxplain checkpoints adopt" in exported.stderr
        assert "fluxplain checkpoints adopt" in stopped.run("doctor").stdout
        configure(checkpoint=key, seed=8)
        assert "not only versions differ from the registered ones: so do seed" in refusal(
            stopped, "--yes"
        )
        other = tmp_path / "other-key"
        other.write_text("k" * 40)
        configure(checkpoint={"key_file": str(other)})
        assert "signed with another key" in refusal(stopped, "--yes")
        configure(checkpoint=key)
        assert stopped.run("checkpoints", "remove", "--yes").returncode == 0
        assert "there is no checkpoint" in refusal(stopped, "--yes")
        assert registered(stopped.config) == before


@pytest.mark.kafka
def test_nothing_is_adopted_while_workers_run(
    start: Start, upgraded: Callable[[str], dict[str, str]]
) -> None:
    with start() as pipeline:
        pipeline.process(VALUES[:60])
        upgraded("9.9.9")
        assert "workers still run" in refusal(pipeline, "--yes")
        pipeline.process(VALUES[60:])
        pipeline.finish(VALUES)


@pytest.mark.kafka
def test_checkpoints_in_a_topic_are_adopted_as_well(
    start: Start,
    upgraded: Callable[[str], dict[str, str]],
    configure: Configure,
    tables: dict[str, Any],
    tmp_path: Path,
) -> None:
    configure(**tables, checkpoint=topic_store(tmp_path))
    with start() as pipeline:
        pipeline.process(VALUES[:100])
    newer = {**upgraded("9.9.9"), **OTHER_BITS}
    with start(roles=(), environment=newer) as stopped:
        assert "other bits after 100 messages" in adopt(stopped).stdout
    with start(environment=newer) as again:
        again.process(VALUES[100:])
    published, [_] = without_notices(again)
    [number] = registered(again.config).adopted
    parts = [(VALUES[:100], Life(), {}), (VALUES[100:], Life(cold_start=number), OTHER_BITS)]
    assert_same(published, reference_across(again.config, parts))
