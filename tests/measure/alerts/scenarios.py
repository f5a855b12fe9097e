"""What goes wrong, and which alerts should fire."""

import os
import pickle
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from fluxplain.cli.announcing import send
from fluxplain.config.replica import Role
from fluxplain.models.model_store import ModelFolder
from fluxplain.schemas import Control
from fluxplain.schemas.control import NewModel
from tests.measure.alerts.model import Steady
from tests.measure.alerts.site import Site, observation

KILLED_S = 300.0
"""Seconds that a role has no worker."""

AWAY_S = 360.0
"""Seconds for which something else is away: alerts that wait for five minutes must have fired."""

LONG_AWAY_S = 660.0
"""The same for the age of the oldest message, five minutes after it is five minutes old."""

CALM_S = 360.0

MODEL = {"factory": "tests.measure.alerts.model:Steady"}

CONTROL = {"control": {"topic": True}, "model": {**MODEL, "version": "v1"}}
"""Settings with which models can be announced."""

RESOLVED_S = 240.0
"""Seconds to wait until alerts end."""

GONE = {"FluxplainWorkerDown": 150.0, "FluxplainRoleAbsent": 220.0, "FluxplainLagUnattended": 230.0}
"""What fires if a role has no worker, and within how many seconds: the rule's `for`, two intervals
of Prometheus and the dashboard's."""

FALSE_ALARM = frozenset({"FluxplainChange"})
"""A detector's false alarm is a change that was published. This stream has one, in iPDP at seq
13,665, since its storages are small; none with the default sizes."""

MOST_REFUSALS = 100_000

COMMIT, FETCH_OFFSETS = 8, 9
"""Kafka's numbers of the requests OffsetCommit and OffsetFetch."""

LOADING, FORBIDDEN = 14, 30
"""Kafka's errors COORDINATOR_LOAD_IN_PROGRESS and GROUP_AUTHORIZATION_FAILED."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Something that goes wrong.

    `expected` has the alerts that must fire, with the seconds within which they must; `allowed`
    those that may, since they are true as well. No other may fire.
    """

    what: str
    act: Callable[[Site], None]
    expected: Mapping[str, float]
    allowed: frozenset[str] = frozenset()
    tables: Mapping[str, Any] = field(default_factory=dict)


def calm(site: Site) -> None:
    """Let everything run, restart one worker, then each in turn, and announce a model."""
    site.begin()
    site.pass_time(CALM_S / 3.0)
    site.workers.crash("model-1")
    site.pass_time(CALM_S / 3.0)
    for role in site.roles:
        site.workers.remove(f"{role}-1")
        site.workers.add(role)
        site.pass_time(10.0)
    announce(site, is_there=True)
    site.stream.make = with_another_field
    site.pass_time(CALM_S / 3.0)
    site.end()


def announce(site: Site, *, is_there: bool) -> None:
    """Announce a model whose file is in the folder of models, or is not."""
    folder = ModelFolder(site.config.model.directory)
    sha256 = folder.put(pickle.dumps(Steady())) if is_there else "0" * 64
    send(site.config, Control(model=NewModel("v2", sha256)), [0])


def with_another_field(i: int, rng: Any) -> bytes:
    fields = orjson.loads(observation(i, rng))
    return orjson.dumps({**fields, "x": {**fields["x"], "new": 1.0}})


def killed(site: Site, name: str, away_s: float = KILLED_S) -> None:
    """Kill a process, start it again after some time, and wait until the alerts end."""
    site.begin()
    site.workers.crash(name)
    site.pass_time(away_s, is_attended=False)
    site.end()
    site.pass_time(60.0)
    site.wait_until_calm(RESOLVED_S)


def port_taken(site: Site) -> None:
    """Let another process take a worker's port: it ends at each start."""
    site.begin()
    site.workers.crash("explainer-1")
    with socket.create_server(("127.0.0.1", site.port("explainer-1"))):
        site.pass_time(AWAY_S)
    site.end()
    site.pass_time(60.0)
    site.wait_until_calm(RESOLVED_S)


def crash_loop(site: Site) -> None:
    """Kill a worker each time it has run for a while."""
    site.begin()
    for _ in range(5):
        site.workers.crash("explainer-1")
        site.pass_time(45.0)
    site.end()
    site.pass_time(60.0)


def missing_model(site: Site) -> None:
    """Announce a model without its file, and withdraw it."""
    site.begin()
    announce(site, is_there=False)
    site.pass_time(AWAY_S)
    site.end()
    send(site.config, Control(withdraw="v2"), [0])
    site.pass_time(30.0)
    site.wait_until_calm(RESOLVED_S)


def lag(site: Site, seconds: float, held: int | None = None) -> None:
    """Let more messages come than the model can learn; or as many, with some that wait."""
    site.begin()
    site.stream.held = held
    site.stream.rate = 40.0
    site.pass_time(seconds)
    site.end()


def unreadable(site: Site) -> None:
    """Send records of which each tenth lacks a feature."""

    def make(i: int, rng: Any) -> bytes:
        return b'{"x": {"a": 1.0}, "y": 1.0}' if i % 10 == 0 else observation(i, rng)

    site.begin()
    site.stream.make = make
    site.pass_time(480.0)
    site.end()


def other_concept(site: Site) -> None:
    """Change what the labels depend on."""

    def make(i: int, rng: Any) -> bytes:
        fields = orjson.loads(observation(i, rng))
        return orjson.dumps({**fields, "y": -fields["y"]})

    site.stream.send(3000)
    site.pass_time(60.0)
    site.begin()
    site.stream.make = make
    site.stream.send(1000)
    site.pass_time(180.0)
    site.end()


def refused(site: Site, request: int, error: int, seconds: float) -> None:
    """Let the broker refuse a kind of request."""
    site.begin()
    site.broker.refuse(request, error, MOST_REFUSALS)
    site.pass_time(seconds)
    site.end()


def broker_away(site: Site) -> None:
    """Take the broker away, and bring it back."""
    site.begin()
    site.broker.set_down(is_down=True)
    site.pass_time(AWAY_S)
    site.end()
    site.broker.set_down(is_down=False)
    site.pass_time(60.0)
    site.wait_until_calm(RESOLVED_S)


def wait(site: Site, seconds: float) -> None:
    """Let what the settings make happen happen."""
    site.begin()
    site.pass_time(seconds)
    site.end()


def frozen(site: Site) -> None:
    """Halt a worker, and let it go on."""
    site.begin()
    pid = site.workers.running()["explainer-1"]
    os.kill(pid, signal.SIGSTOP)
    site.pass_time(AWAY_S, is_attended=False)
    site.end()
    os.kill(pid, signal.SIGCONT)
    site.pass_time(60.0)
    site.wait_until_calm(RESOLVED_S)


def log_gone(site: Site) -> None:
    """Let the log of observations lose its beginning while the model is away."""

    def make(i: int, rng: Any) -> bytes:
        fields = orjson.loads(observation(i, rng))
        return orjson.dumps({**fields, "id": rng.randbytes(450).hex()})  # hardly compressible

    site.begin()
    site.workers.crash("model-1")
    site.stream.make = make
    site.stream.send(20_000)
    site.stream.make = observation
    site.pass_time(120.0)
    site.end()


def _model(**params: Any) -> dict[str, Any]:
    """Return the settings of a model that costs something."""
    return {"model": {**MODEL, "params": params}}


def _killed(role: Role, **tables: Any) -> Scenario:
    act = partial(killed, name=f"{role}-1")
    return Scenario(
        f"the only worker of {role} is killed for {KILLED_S / 60:.0f} minutes",
        act,
        GONE,
        tables=tables,
    )


SCENARIOS: Mapping[str, Scenario] = {
    "calm": Scenario(
        "six minutes; a worker is killed and restarted, then each in turn; a model is announced, "
        "and a field appears",
        calm,
        {},
        tables=CONTROL,
    ),
    "model-killed": _killed("model"),
    "explainer-killed": _killed("explainer"),
    "drift-killed": _killed("drift"),
    "join-killed": _killed("join", **CONTROL),
    "drift-away": Scenario(
        "the only worker of drift is away for eleven minutes",
        partial(killed, name="drift-1", away_s=LONG_AWAY_S),
        {**GONE, "FluxplainOldestMessage": 630.0},
    ),
    "dashboard-killed": Scenario(
        "the dashboard is killed for six minutes",
        partial(killed, name="dashboard", away_s=AWAY_S),
        {"FluxplainWorkerDown": 150.0, "FluxplainLagUnknown": 340.0},
    ),
    "port-taken": Scenario(
        "a worker ends at each start, since its port is taken",
        port_taken,
        GONE,
    ),
    "crash-loop": Scenario(
        "a worker is killed five times in four minutes", crash_loop, {"FluxplainCrashLoop": 240.0}
    ),
    "frozen": Scenario("a worker is halted for six minutes", frozen, GONE),
    "missing-model": Scenario(
        "the file of an announced model is missing",
        missing_model,
        {"FluxplainWaitingForAModel": 150.0, "FluxplainWorkerNotReady": 340.0},
        tables=CONTROL,
    ),
    "lag-growing": Scenario(
        "messages arrive twice as fast as the model learns",
        partial(lag, seconds=1140.0),
        {"FluxplainLagGrowing": 1100.0},
        allowed=frozenset({"FluxplainOldestMessage", *FALSE_ALARM}),
        tables=_model(learn_s=0.05),
    ),
    "lag-steady": Scenario(
        "1,500 messages wait all the time",
        partial(lag, seconds=2280.0, held=1500),
        {"FluxplainLagSteady": 2250.0},
        allowed=FALSE_ALARM,
        tables=_model(learn_s=0.05),
    ),
    "dead-letters": Scenario(
        "a tenth of the records cannot be used", unreadable, {"FluxplainDeadLetters": 400.0}
    ),
    "change": Scenario(
        "the labels depend on other things", other_concept, {"FluxplainChange": 120.0}
    ),
    "no-commit": Scenario(
        "the broker refuses commits, so the watchdog ends each worker",
        partial(refused, request=COMMIT, error=LOADING, seconds=420.0),
        {"FluxplainCrashLoop": 420.0},
        allowed=frozenset({"FluxplainNothingCommitted", "FluxplainWorkerNotReady"}),
    ),
    "group-unanswered": Scenario(
        "the broker refuses to describe groups",
        partial(refused, request=FETCH_OFFSETS, error=FORBIDDEN, seconds=420.0),
        {"FluxplainGroupUnanswered": 340.0},
        allowed=frozenset({"FluxplainLagUnknown"}),
    ),
    "broker-away": Scenario(
        "the broker is away for six minutes",
        broker_away,
        {
            "FluxplainNothingCommitted": 240.0,
            "FluxplainWorkerNotReady": 350.0,
            "FluxplainGroupUnanswered": 340.0,
        },
        allowed=frozenset({"FluxplainLagUnknown", "FluxplainCheckpointTooOld"}),
    ),
    "log-gone": Scenario(
        "the log loses messages that the model has not read",
        log_gone,
        {"FluxplainHistoryLost": 100.0},
        allowed=FALSE_ALARM,
        tables={"checkpoint": {"out_of_range": "earliest"}},
    ),
    "checkpoint-rare": Scenario(
        "checkpoint.interval_s is ten minutes",
        partial(wait, seconds=480.0),
        {"FluxplainCheckpointTooOld": 420.0},
        allowed=frozenset({"FluxplainNothingCommitted", "FluxplainOldestMessage"}),
        tables={"checkpoint": {"interval_s": 600.0}},
    ),
    "checkpoint-slow": Scenario(
        "pickling the model takes seven seconds",
        partial(wait, seconds=1080.0),
        {"FluxplainCheckpointSlow": 1050.0},
        tables=_model(pickle_s=7.0),
    ),
    "memory": Scenario(
        "the model takes 2.1 GB",
        partial(wait, seconds=990.0),
        {"FluxplainMemory": 980.0},
        tables=_model(ballast_mb=2100),
    ),
}
