"""States that the dashboard can be in, each as a store that a real server shows."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from threading import Thread
from typing import Any

from fluxplain.config import Config
from fluxplain.results.pipeline_status import RoleStatus
from fluxplain.results.store import Store
from fluxplain.schemas import Note, Prediction, Record
from fluxplain.schemas.prediction import LabelCounts
from tests.kit import records as plain
from tests.kit.support import make_config
from tests.monitor.dashboard.stream import STREAM, change, name, records

LONG = "transactions_of_the_last_{}_days_by_customers_of_segment_{}"

STREAMS = 6

BEGAN_S = 1_795_392_506.639

NAMED = {"f1": "Oil pressure", "f2": "Water temperature"}


def settings(**tables: Any) -> Config:
    """Return settings with features of which two have names to show."""
    shown = {"port": 0, "features": NAMED, "units": {"f1": "bar", "f2": "°C"}}
    names = {name(i): "numeric" for i in range(9)}
    return make_config(**{"features": names, "dashboard": shown, **tables})


def filled(found: Iterator[Record], *, lag: int = 0, loaded: bool = True) -> Store:
    """Return a store of records that came a moment ago, a minute apart."""
    store, now = Store("fluxplain.features"), time.monotonic()
    roles = (("model", "features"), ("explainer", "evaluations"), ("drift", "explanations"))
    for i, record in enumerate(found):
        timed = isinstance(record, Prediction)
        each = replace(record, ts=BEGAN_S + 60.0 * record.seq) if timed else record  # type: ignore[attr-defined, call-arg]
        store.add(each, 0, now - 2.0 + i / 1e6, at=int(1e3 * time.time()))
    store.status.roles = [
        RoleStatus(part, topic, lag if part == "model" else 0, now, part == "model")
        for part, topic in roles
    ]
    store.status.has_roles, store.status.is_loaded = True, loaded
    return store


def going_on(store: Store) -> Store:
    """Let records come while the page is shown: two hundred a second, while as many arrive."""

    def go_on() -> None:
        for seq in count(store.streams[STREAM].newest_seq + 1, 20):
            with store.lock:
                now = time.monotonic()
                for i in range(20):
                    ts = BEGAN_S + 60.0 * (seq + i)
                    each = replace(plain.prediction(seq + i, stream=STREAM), ts=ts)
                    store.add(each, 0, now, at=int(1e3 * time.time()))
                store.status.roles = [replace(r, moved_at=now) for r in store.status.roles]
            time.sleep(0.1)

    Thread(target=go_on, daemon=True).start()
    return store


def one_incident() -> Store:
    store = filled(records(2_000))
    at = "2026-11-24T09:00:00Z"
    known = change("f1", 1301, "ipdp", rose=False).id
    store.add(Note("acknowledged", at, change=known, text="the release of Monday", by="Ada"))
    return store


def learning() -> Store:
    early = replace(change("f1", 118, "ipfi"), learning=True)
    return filled(iter([*records(130), early]))


def many_changes() -> Store:
    found = [
        change(name(i % 9), 200 + 47 * i, ("ipfi", "isage", "ipdp")[i % 3], rose=i % 2 == 0)
        for i in range(38)
    ]
    sized = [replace(each, effect_size=0.02 * (i % 11)) for i, each in enumerate(found)]
    return filled(iter([*records(2_000, half=5_000), *sized]))


def many_features() -> Store:
    def renamed(record: Record) -> Record:
        feature = getattr(record, "feature", None)
        if feature is None:
            return record
        return replace(record, feature=long_name(int(feature[1:])))  # type: ignore[call-arg]

    return filled(map(renamed, records(2_000, features=100)))


def long_name(i: int) -> str:
    return LONG.format(i // 10 + 1, i % 10)


def six_streams() -> Store:
    return filled(
        each
        for i in range(STREAMS)
        for each in records(1_500, half=600 + 100 * i, stream=f"{STREAM[:-1]}{i}")
    )


def late_labels() -> Store:
    def late(record: Record) -> Record:
        if not isinstance(record, Prediction):
            return record
        counts = LabelCounts(min(record.seq, 340), max(record.seq - 340, 0), 17, 2, 1)
        return replace(record, labels=counts)

    return filled(map(late, records(2_000, half=5_000)))


def loading() -> Store:
    store = filled(records(400, half=5_000), loaded=False)
    store.status.to_read, store.status.read = 1_000_000, 380_000
    return store


def troubled() -> Store:
    store = filled(records(2_000, half=5_000))
    store.status.trouble = "broker:9092 does not answer since 40 seconds"
    store.add(plain.letter(7))
    return store


STATES: dict[str, tuple[Callable[[], Store], dict[str, Any]]] = {
    "calm": (lambda: going_on(filled(records(2_000, half=5_000))), {}),
    "learning": (learning, {}),
    "incident": (one_incident, {}),
    "changes": (many_changes, {}),
    "features": (
        many_features,
        {
            "features": {long_name(i): "numeric" for i in range(100)},
            "dashboard": {"port": 0},
        },
    ),
    "streams": (six_streams, {}),
    "labels": (late_labels, {}),
    "empty": (lambda: filled(iter(())), {}),
    "loading": (loading, {}),
    "behind": (lambda: going_on(filled(records(2_000, half=5_000), lag=900_000)), {}),
    "trouble": (troubled, {}),
    "lost": (lambda: filled(records(2_000, half=5_000)), {}),
}
"""State → how to make it, and tables of its settings. Of ``lost`` the server is stopped later."""
