"""The dashboard's server with a long history, without a broker; or somebody who listens to one.

A process of its own that loads what the dashboard loads, so that its memory is comparable.
"""

import asyncio
import random
import sys
import threading
import time
import urllib.request
from dataclasses import replace
from typing import Any

import orjson
import psutil

from fluxplain.config import Config
from fluxplain.monitor.dashboard.server import Server
from fluxplain.results.store import Store
from fluxplain.schemas import Explanation
from tests.monitor.dashboard.stream import EMIT_EVERY, change, explanation, name, records

FEATURES = 100

POINTS = 100_000
"""Of each feature's history."""

SETTINGS: dict[str, Any] = {
    "features": {name(i): "numeric" for i in range(FEATURES)},
    "label": {"type": "integer"},
    "model": {"factory": "river.forest:ARFClassifier"},
    "dashboard": {"port": 0},
}


def _listen(address: str) -> None:
    with urllib.request.urlopen(f"{address}/api/events") as news:
        while news.readline():
            pass


async def _serve() -> None:
    store, told = Store(), {}
    for part, (first, last) in {
        "tenth": (0, POINTS // 10),
        "whole": (POINTS // 10, POINTS),
    }.items():
        _fill(store, first, last)
        told[part] = psutil.Process().memory_info().rss / 1e6
    store.status.is_loaded = True
    server = Server(Config(**SETTINGS), store)
    told["address"] = await server.start()
    print(orjson.dumps(told).decode(), flush=True)
    threading.Thread(target=_go_on, args=(store,), daemon=True).start()
    await asyncio.Event().wait()


def _fill(store: Store, first: int, last: int) -> None:
    rng = random.Random(1)
    half = POINTS * EMIT_EVERY // 2
    pattern: list[Explanation] = []
    for point in range(first, last):
        seq = point * EMIT_EVERY
        if not pattern or point % 1_000 == 0:
            pattern = [explanation(i, seq, half, rng) for i in range(FEATURES)]
            for i in range(FEATURES):
                store.add(explanation(i, seq, half, rng, method="ipdp"), 0)
                store.add(change(name(i), seq, "ipfi"), 0)
            for record in records(10, features=0, first=seq):
                store.add(record, 0)
        for each in pattern:
            store.add(replace(each, seq=seq), 0)


def _go_on(store: Store) -> None:
    rng = random.Random(2)
    point = POINTS
    while True:
        with store.lock:
            for i in range(FEATURES):
                seq = point * EMIT_EVERY
                store.add(explanation(i, seq, POINTS * EMIT_EVERY // 2, rng), 0, time.monotonic())
        point += 1
        time.sleep(0.2)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _listen(sys.argv[1])
    else:
        asyncio.run(_serve())
