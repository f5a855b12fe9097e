"""What the server answers, to whom, and what its headers forbid."""

import asyncio
import hashlib
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import aiohttp
import orjson
import pytest
from prometheus_client import CollectorRegistry

from fluxplain.config import Config, ConfigError
from fluxplain.kafka.producer import DeliveryError
from fluxplain.monitor.dashboard.note_requests import Write
from fluxplain.monitor.dashboard.server import HEADERS, PAGE, Server, run, serving
from fluxplain.monitor.dashboard.views import HEAT_COLUMNS, SHOWN_POINTS, Choice, View
from fluxplain.results.store import Store
from fluxplain.schemas import Change, Note
from fluxplain.schemas.change import NoticeKind
from fluxplain.schemas.methods import METHOD_NAMES
from fluxplain.schemas.record import Value
from tests.kit.free_ports import last_port_taken
from tests.kit.records import letter, prediction, reasons, store_of
from tests.kit.support import make_config
from tests.monitor.dashboard.stream import STREAM, change, name, records

Ask = Callable[[aiohttp.ClientSession, str], Awaitable[Any]]

SELECTION = f"stream={STREAM}&method=ipfi&alpha=0.001"


@pytest.fixture(scope="module")
def config() -> Config:
    return make_config(
        features={name(i): "numeric" for i in range(9)},
        explain={"alpha": 0.001},
        dashboard={"port": 0, "names": ["stats.example.com"]},
    )


@pytest.fixture(scope="module")
def store() -> Store:
    known = Store()
    for record in records(12_000, features=3, half=6000):
        known.add(record, 0)
    return known


def visit(config: Config, store: Store, ask: Ask) -> Any:
    """Return what somebody who asks the server gets."""

    async def run() -> Any:
        running = Server(config, store)
        address = await running.start()
        try:
            async with aiohttp.ClientSession(auto_decompress=False) as session:
                return await ask(session, address)
        finally:
            await running.stop()

    return asyncio.run(run())


def get(config: Config, store: Store, path: str, **headers: str) -> tuple[int, Any, bytes]:
    async def ask(session: aiohttp.ClientSession, address: str) -> tuple[int, Any, bytes]:
        async with session.get(address + path, headers=headers) as answer:
            return answer.status, answer.headers, await answer.read()

    result: tuple[int, Any, bytes] = visit(config, store, ask)
    return result


def plain(config: Config, store: Store, path: str) -> Any:
    status, _, body = get(config, store, path, **{"Accept-Encoding": "identity"})
    assert status == 200
    return orjson.loads(body)


@pytest.mark.parametrize(
    ("paths", "host", "status"),
    [
        (["/", "/js/app.js", "/api/overview"], "localhost:1", 200),
        (["/", "/api/overview"], "127.0.0.1", 200),
        (["/", "/api/overview"], "stats.example.com", 200),
        (["/", "/api/overview"], "evil.example", 421),
        (["/api/changes/none", "/no/such/thing", "/js/"], "localhost", 404),
        (["/vendor/../../server.py", "/..%2f..%2fserver.py"], "localhost", 404),
        (["/vendor/echarts.LICENSE"], "localhost", 404),
    ],
)
def test_only_the_page_is_served_to_known_names_and_every_answer_restricts_the_browser(
    config: Config, store: Store, paths: list[str], host: str, status: int
) -> None:
    for path in paths:
        found, headers, _ = get(config, store, path, Host=host)
        assert found == status
        assert {name: headers[name] for name in HEADERS} == HEADERS
        assert "unsafe" not in headers["Content-Security-Policy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(config: Config, store: Store, method: str) -> None:
    async def ask(session: aiohttp.ClientSession, address: str) -> int:
        async with session.request(method, f"{address}/api/overview") as answer:
            return answer.status

    assert visit(config, store, ask) == 405


class Written(list[Note]):
    """Notes that the page has written."""

    def __call__(self, notes: Sequence[Note]) -> None:
        self.extend(notes)


def post(
    config: Config, store: Store, write: Write | None, fields: object, **headers: str
) -> tuple[int, str]:
    """Return what a page gets that notes something, by default the server's own."""

    async def ask() -> tuple[int, str]:
        running = Server(config, store, write)
        address = await running.start()
        sent = {"Content-Type": "application/json", "Origin": address, **headers}
        try:
            url, body = f"{address}/api/notes", orjson.dumps(fields)
            async with (
                aiohttp.ClientSession() as session,
                session.post(url, data=body, headers=sent) as answer,
            ):
                return answer.status, await answer.text()
        finally:
            await running.stop()

    return asyncio.run(ask())


def a_change(store: Store) -> Change:
    return next(each for _, each in store.streams[STREAM].changes if each.incident)


MUTE = {"state": "muted", "feature": "f1", "text": "noise"}


def test_the_page_notes_what_people_know(config: Config, store: Store) -> None:
    one, written = a_change(store), Written()
    known = {"state": "acknowledged", "change": one.id, "text": "a release", "by": "Ada"}
    assert post(config, store, written, known) == (204, "")
    assert post(config, store, written, {"state": "open", "change": one.id}) == (204, "")
    assert post(config, store, written, MUTE) == (204, "")
    assert [(n.state, n.change, n.stream, n.feature, n.text, n.by) for n in written] == [
        ("acknowledged", one.id, STREAM, None, "a release", "Ada"),
        ("open", one.id, STREAM, None, None, None),
        ("muted", None, None, "f1", "noise", None),
    ]
    written.clear()
    assert post(config, store, written, {**known, "change": one.incident})[0] == 204
    members = {each.id for each in store.changes_of(one.incident or "")}
    assert {note.change for note in written} == members
    assert len(members) > 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://[broken"}, 403),
        ({"Host": "stats.example.com"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
    ],
)
def test_no_other_page_can_note_anything(
    config: Config, store: Store, headers: dict[str, str], status: int
) -> None:
    written = Written()
    assert post(config, store, written, MUTE, **headers)[0] == status
    assert not written


def test_behind_a_proxy_the_page_notes_by_its_own_name(config: Config, store: Store) -> None:
    names = {"Host": "stats.example.com", "Origin": "https://stats.example.com"}
    assert post(config, store, Written(), MUTE, **names)[0] == 204


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([], "the body must be an object of state, change"),
        ({**MUTE, "at": "2026-03-01"}, "the body must be an object of state, change"),
        ({**MUTE, "text": 1}, "must be texts"),
        ({**MUTE, "state": "gone"}, "state must be acknowledged, open, muted or unmuted"),
        (
            {**MUTE, "feature": "ff1"},
            "there is no feature, group or pair 'ff1'; did you mean 'f1'?",
        ),
        ({**MUTE, "text": None}, "a mute needs a reason"),
        ({**MUTE, "until": "2026-03-01"}, "no time from now on"),
        ({**MUTE, "stream": "none-0"}, "there is no stream 'none-0'"),
        ({**MUTE, "by": "x" * 101}, "by: String should have at most 100 characters"),
        ({"state": "acknowledged", "change": "0" * 12}, "there is no such change"),
        ({"state": "acknowledged"}, "there is no such change"),
    ],
)
def test_what_cannot_be_noted_is_refused_with_the_reason(
    config: Config, store: Store, fields: object, reason: str
) -> None:
    written = Written()
    status, text = post(config, store, written, fields)
    assert (status, written) == (400, [])
    assert reason in text


def test_a_broker_that_refuses_and_a_page_that_may_not_write_say_so(
    config: Config, store: Store
) -> None:
    def refused(_notes: Sequence[Note]) -> None:
        raise DeliveryError("the broker did not take a message")

    assert post(config, store, refused, MUTE) == (503, "the broker did not take a message\n")
    status, text = post(config, store, None, MUTE)
    assert (status, "dashboard.write" in text) == (403, True)
    assert post(config, store, Written(), {**MUTE, "text": "x" * 20_000})[0] == 413


def test_the_page_gets_what_was_noted_with_each_change_and_feature(config: Config) -> None:
    known = Store()
    for record in records(1_400, features=3):
        known.add(record, 0)
    one, at = a_change(known), "2026-03-01T12:00:00Z"
    version = known.version
    known.add(Note("acknowledged", at, change=one.id, stream=STREAM, text="a release", by="Ada"))
    known.add(Note("muted", at, feature="f0", text="noise", until="2100-01-01"))
    answer = plain(config, known, "/api/overview")
    notes = {each["id"]: each["note"] for each in answer["changes"] if each["note"]}
    at_ms, until_ms = 1_772_366_400_000, 4_102_444_800_000
    assert notes == {one.id: {"by": "Ada", "at": at_ms, "text": "a release", "until": None}}
    muted = {"by": None, "at": at_ms, "text": "noise", "until": until_ms, "stream": None}
    assert answer["muted"] == {"f0": muted}
    assert plain(config, known, "/status.json")["streams"][STREAM]["muted"] == {"f0": muted}
    _, news = View(config, known).news(Choice(STREAM, "ipfi", 0.001), version)
    assert [each["id"] for each in orjson.loads(news)["changes"]] == [one.id]


@pytest.mark.parametrize("category", [True, False, "bmw", 0])
def test_a_change_of_a_share_names_its_category(config: Config, category: Value) -> None:
    share = replace(change(None, 50, "loss"), kind="output", signal="share", category=category)
    known = store_of([*records(100, features=3), replace(share, method=None)])
    answer = orjson.loads(View(config, known).overview(Choice(STREAM)))
    [found] = [each for each in answer["changes"] if each["kind"] == "output"]
    assert repr(found["category"]) == repr(category)


def test_the_page_gets_the_incidents_whenever_a_change_comes(config: Config) -> None:
    known = store_of([prediction(2000), change("f1", 1000, "ipfi"), change(None, 1010, "loss")])
    view, choice = View(config, known), Choice(STREAM)
    [found] = orjson.loads(view.overview(choice))["incidents"]
    assert (found["severity"], len(found["changes"])) == ("high", 2)
    version, _ = view.news(choice, -1)
    assert orjson.loads(view.news(choice, version)[1])["incidents"] is None
    known.add(change("f2", 2900, "ipfi", rose=False))
    _, news = view.news(choice, version)
    assert [each["first"] for each in orjson.loads(news)["incidents"]] == [2900, 1000]
    version = known.version
    known.add(Note("muted", "2026-03-01T12:00:00Z", feature="f2", text="noise"))
    _, news = view.news(choice, version)
    assert [each["first"] for each in orjson.loads(news)["incidents"]] == [1000]


def test_the_page_gets_the_incidents_when_a_mute_ends(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = store_of([prediction(2000), change("f1", 1000, "ipfi")])
    at, until = "2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z"
    known.add(Note("muted", at, feature="f1", text="noise", until=until))
    view, choice = View(config, known), Choice(STREAM)
    end_s = datetime.fromisoformat(until).timestamp()
    monkeypatch.setattr(time, "time", lambda: end_s - 1.0)
    version, news = view.news(choice, -1)
    assert orjson.loads(news)["incidents"] == []
    monkeypatch.setattr(time, "time", lambda: end_s)
    version, news = view.news(choice, version)
    assert [each["first"] for each in orjson.loads(news)["incidents"]] == [1000]
    assert orjson.loads(view.news(choice, version)[1])["incidents"] is None


def test_files_are_compressed_and_asked_for_once(config: Config, store: Store) -> None:
    path = "/vendor/echarts.min.js"
    _, headers, body = get(config, store, path, **{"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] == "gzip"
    assert len(body) < 450_000
    status, _, again = get(config, store, path, **{"If-None-Match": headers["ETag"]})
    assert (status, again) == (304, b"")


def test_the_state_of_each_stream_can_be_asked_for_in_words(config: Config, store: Store) -> None:
    found = plain(config, store, "/status.json")["streams"]
    assert found.keys() == set(store.streams)
    page = plain(config, store, f"/api/overview?{SELECTION}")["headline"]
    said = found[STREAM]
    assert {name: said[name] for name in page} == page
    assert said["text"].count(". ") == 2
    assert said["change"] in said["text"]


def test_all_features_over_time_are_sorted_by_what_they_are_now(
    config: Config, store: Store
) -> None:
    found = plain(config, store, f"/api/heat?{SELECTION}")
    assert len(found["seq"]) == HEAT_COLUMNS
    now = [values[-1] for values in found["values"]]
    assert now == sorted(now, reverse=True)
    newest = plain(config, store, f"/api/overview?{SELECTION}")["features"]
    for feature, value in zip(found["features"], now, strict=True):
        assert value == pytest.approx(newest[feature]["value"][-1], abs=1e-6)


def test_streams_have_the_names_of_the_settings(store: Store) -> None:
    config = make_config(
        features={name(i): "numeric" for i in range(9)},
        dashboard={"port": 0, "streams": {"0": "card-EU"}},
    )
    assert plain(config, store, "/api/overview")["about"]["streams"] == {STREAM: "card-EU"}


def test_the_page_calls_each_method_as_everything_else_does(config: Config, store: Store) -> None:
    methods = plain(config, store, "/api/overview")["about"]["methods"]
    names = {name: each["title"] for name, each in methods.items()}
    assert {**names, "loss": "loss"} == METHOD_NAMES


def test_the_page_names_each_kind_of_notice_for_what_it_is() -> None:
    [table] = re.findall(r"NOTICES = {(.*?)}", (PAGE / "js/format.js").read_text(), re.DOTALL)
    titles = dict(re.findall(r'"(.+?)": "(.+?)"', table))
    assert titles.keys() == set(get_args(NoticeKind))
    assert len(set(titles.values())) == len(titles)


def test_history_is_thinned_to_what_a_screen_shows(config: Config, store: Store) -> None:
    whole = plain(config, store, f"/api/series?{SELECTION}&feature=f1&feature=f2&feature=none")
    assert whole["lines"].keys() == {"f1", "f2"}
    line = whole["lines"]["f1"]
    assert len(line["seq"]) == len(line["value"]) == len(line["std_error"])
    assert SHOWN_POINTS / 2 <= len(line["seq"]) <= SHOWN_POINTS
    assert line["seq"][-1] == 11_990
    closer = plain(config, store, f"/api/series?{SELECTION}&feature=f1&from=5000&to=6000")
    seqs = closer["lines"]["f1"]["seq"]
    assert seqs[0] <= 5000 < 6000 <= seqs[-1]
    inside = [seq for seq in seqs if 5000 <= seq <= 6000]
    assert len(inside) >= 100 > sum(5000 <= seq <= 6000 for seq in line["seq"])


def test_answers_are_compressed(config: Config, store: Store) -> None:
    path = f"/api/series?{SELECTION}&feature=f1"
    _, headers, body = get(config, store, path, **{"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] == "gzip"
    assert len(body) < 0.6 * len(orjson.dumps(plain(config, store, path)))


def test_the_overview_chooses_what_was_left_open(config: Config, store: Store) -> None:
    answer = plain(config, store, "/api/overview")
    assert (answer["stream"], answer["method"], answer["alpha"]) == (STREAM, "ipfi", 0.001)
    assert answer["methods"] == ["ipfi", "isage", "ipdp"]
    assert answer["features"].keys() == {"f0", "f1", "f2"}
    assert len(answer["changes"]) == 5
    other = plain(config, store, "/api/overview?method=isage&alpha=0.5&stream=nobody-0")
    assert (other["stream"], other["method"], other["alpha"]) == (STREAM, "isage", 0.001)


def test_a_stream_is_shown_by_its_own_loss_and_smoothing_rates() -> None:
    own = {"explain": {"alpha": [0.2, 0.05], "loss": "brier"}}
    config = make_config(
        features={name(i): "numeric" for i in range(2)},
        explain={"alpha": 0.001},
        streams={3: own},
        dashboard={"port": 0},
    )
    known, stream = Store(), "fluxplain.features-3"
    for record in (
        *records(50, features=2),
        *records(50, features=2, stream=stream, alpha=0.05),
        *records(50, features=2, stream=stream, alpha=0.2),
    ):
        known.add(record, 0)
    answer = plain(config, known, f"/api/overview?stream={stream}")
    assert (answer["alpha"], answer["alphas"], answer["about"]["loss"]) == (
        0.2,
        [0.2, 0.05],
        "brier",
    )
    other = plain(config, known, "/api/overview")
    assert (other["alpha"], other["about"]["loss"]) == (0.001, "cross entropy")
    assert plain(config, known, f"/api/curves?stream={stream}&feature=f1")["current"]
    told = plain(config, known, "/api/streams?method=isage")
    assert [(row["stream"], row["method"], row["alpha"]) for row in told["rows"]] == [
        (STREAM, "isage", 0.001),
        (stream, "isage", 0.2),
    ]
    assert not told["has_more"]
    assert get(config, known, "/api/streams?method=shap")[0] == 400


def test_a_stream_of_which_there_are_only_dead_letters_is_not_shown_first(config: Config) -> None:
    known = Store("fluxplain.features")
    known.add(letter(1, topic="fluxplain.features"), 0)
    for record in records(50, features=2, stream="fluxplain.features-1"):
        known.add(record, 0)
    answer = plain(config, known, "/api/overview")
    assert answer["streams"] == ["fluxplain.features-0", "fluxplain.features-1"]
    assert answer["stream"] == "fluxplain.features-1"
    chosen = plain(config, known, "/api/overview?stream=fluxplain.features-0")
    assert (chosen["stream"], chosen["features"], chosen["records"]) == (
        "fluxplain.features-0",
        {},
        0,
    )


def test_a_story_and_curves_are_found_by_name(config: Config, store: Store) -> None:
    drift = change("f1", 6301, "ipfi", rose=False)
    assert plain(config, store, f"/api/changes/{drift.id}") == orjson.loads(drift.encode())
    assert get(config, store, "/api/changes/0123456789ab")[0] == 404
    curves = plain(config, store, f"/api/curves?stream={STREAM}&feature=f1&alpha=0.001")
    assert curves["current"]["seq"] == 11_990
    assert curves["earlier"]
    assert len(curves["ice"]) == 5
    assert get(config, store, f"/api/curves?stream={STREAM}&feature=none")[0] == 404


def test_reasons_are_listed_by_the_predicted_class_and_found_by_stream_and_seq(
    config: Config,
) -> None:
    known, predicted = Store(), reasons(7, stream=STREAM, output=0.75)
    other = reasons(7, stream=STREAM, label=False, output=0.25)
    for record in (reasons(3, stream=STREAM, label=None), other, predicted):
        known.add(record)
    told = plain(config, known, f"/api/reasons?stream={STREAM}")
    assert not told["enabled"]
    assert [row["seq"] for row in told["rows"]] == [7, 3]
    first = {"prediction": True, "label": True, "output": 0.75, "base": 0.25}
    largest = {"feature": "amount", "value": 950.5, "contribution": 0.6, "std_error": 0.03}
    largest["is_missing"] = False
    assert told["rows"][0] == {"seq": 7, "id": "tx-7", **first, **largest}
    found = plain(config, known, f"/api/reasons/{STREAM}/7")
    assert found == [orjson.loads(each.encode()) for each in (other, predicted)]
    assert plain(config, known, "/api/overview")["reasons"] == known.version
    for path in (f"{STREAM}/8", "nobody-0/7", f"{STREAM}/x", f"{STREAM}/{'9' * 5000}"):
        assert get(config, known, f"/api/reasons/{path}")[0] == 404


def test_the_list_says_whether_the_value_of_the_largest_reason_was_missing(config: Config) -> None:
    known = Store()
    for seq, missing in ((3, ["hour"]), (7, ["amount"])):
        known.add(replace(reasons(seq, stream=STREAM), missing=missing))
    rows = plain(config, known, f"/api/reasons?stream={STREAM}")["rows"]
    assert [row["is_missing"] for row in rows] == [True, False]


def test_a_stream_without_reasons_says_whether_its_settings_enable_them() -> None:
    config = make_config(
        features={name(0): "numeric"},
        streams={3: {"reasons": {"enabled": True}}},
        dashboard={"port": 0},
    )
    for stream, enabled in ((STREAM, False), ("fluxplain.features-3", True)):
        told = plain(config, Store(), f"/api/reasons?stream={stream}")
        assert told == {"enabled": enabled, "rows": []}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("overview?method=shap", "method must be one of"),
        ("overview?alpha=much", "alpha must be a number"),
        ("series?from=now", "from must be a number"),
        ("series?" + "&".join(["feature=f"] * 300), "at most 200 times"),
    ],
)
def test_a_wrong_request_is_refused(config: Config, store: Store, query: str, reason: str) -> None:
    status, _, body = get(config, store, f"/api/{query}")
    assert status == 400
    assert reason in body.decode()


def test_news_is_all_that_came_since_and_nothing_else(config: Config) -> None:
    known = Store()
    for record in records(1000, features=2):
        known.add(record, 0)
    version = known.version
    for record in records(500, features=2, first=1000):
        known.add(record, 0)

    async def ask(session: aiohttp.ClientSession, address: str) -> Any:
        url = f"{address}/api/events?{SELECTION}&since={version}"
        async with session.get(url) as stream:
            assert stream.content_type == "text/event-stream"
            first = await stream.content.readuntil(b"\n\n")
            told = orjson.loads(first.removeprefix(b"data: "))
            with known.lock:
                known.add(change("f1", 1600, "ipfi"), 0)
            later = await stream.content.readuntil(b"\n\n")
            return told, orjson.loads(later.removeprefix(b"data: "))

    first, later = visit(config, known, ask)
    seqs = first["features"]["f1"]["seq"]
    assert seqs[-1] == 1490
    assert min(seqs) >= 1000
    assert {each["seq"] for each in first["changes"]} == {1301, 1302, 1305}
    assert [each["seq"] for each in later["changes"]] == [1600]
    assert later["features"] == {}


def test_no_more_pages_than_can_be_served(
    config: Config, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{Server.__module__}.MAX_LISTENERS", 1)

    async def ask(session: aiohttp.ClientSession, address: str) -> int:
        async with session.get(f"{address}/api/events") as first:
            await first.content.readuntil(b"\n\n")
            async with session.get(f"{address}/api/events") as second:
                return second.status

    assert visit(config, store, ask) == 503


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{Server.__module__}.UPDATE_S", 0.02)


TESTS = Path(__file__).parent / "vendor"

FILES = {
    PAGE / "vendor/echarts.min.js": (
        "b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0"
    ),
    PAGE / "vendor/inter-latin-wght-normal.woff2": (
        "3100e775e8616cd2611beecfa23a4263d7037586789b43f035236a2e6fbd4c62"
    ),
    TESTS / "axe.min.js": "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
}
"""File → SHA-256; the README beside it says where it is from."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_as_its_makers_published_it(path: Path) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() == FILES[path]
    licence = path.parent / f"{path.name.partition('-')[0].partition('.')[0]}.LICENSE"
    assert licence.stat().st_size > 1_000


def test_a_page_is_served_beside_other_work_and_ends_with_it(config: Config, store: Store) -> None:
    with (
        serving(config, store) as address,
        urllib.request.urlopen(f"{address}/api/overview") as answer,
    ):
        assert answer.status == 200
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(f"{address}/api/overview")


def test_the_page_is_not_served_if_nobody_can_listen_at_the_port_of_the_metrics() -> None:
    async def start(first: int) -> None:
        config = make_config(dashboard={"port": first, "metrics_port": first + 1})
        with pytest.raises(ConfigError, match=r"dashboard\.metrics_port"):
            await run(config, lambda _: None, CollectorRegistry())
        socket.create_server(("127.0.0.1", first)).close()

    with last_port_taken(2) as first:
        asyncio.run(start(first))
