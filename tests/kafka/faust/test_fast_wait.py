"""A service that begins at once what it waits for, and else waits as Faust's do."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fluxplain.kafka.faust.fast_wait import FastWaitService


class Bystander(FastWaitService):
    """A service with nothing to do."""


Test = Callable[[Bystander], Awaitable[None]]


def started(test: Test) -> Callable[[], None]:
    """Run a test with a service that has started."""

    def run() -> None:
        async def with_service() -> None:
            async with Bystander() as service:
                await test(service)

        asyncio.run(with_service())

    run.__name__ = test.__name__
    return run


async def never() -> None:
    await asyncio.Event().wait()


async def others_go_on() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@started
async def test_what_needs_no_waiting_is_done_without_a_task(service: Bystander) -> None:
    before = asyncio.all_tasks()

    async def at_once() -> str:
        assert asyncio.all_tasks() == before
        return "done"

    done = at_once()
    results = await service.wait_first(done, never())
    assert (results.done, results.results, results.stopped) == ([done], ["done"], False)
    assert asyncio.all_tasks() == before


@started
async def test_what_waits_is_waited_for_more_than_once(service: Bystander) -> None:
    events, passed = [asyncio.Event() for _ in range(3)], list[int]()

    async def slowly() -> str:
        for i, event in enumerate(events):
            await event.wait()
            passed.append(i)
        return "done"

    waiting = asyncio.ensure_future(service.wait_first(slowly(), never()))
    for i, event in enumerate(events):
        assert passed == list(range(i))
        event.set()
        await others_go_on()
    results = await waiting
    assert (results.results, results.stopped) == (["done"], False)


@started
async def test_what_is_not_done_first_is_cancelled(service: Bystander) -> None:
    event, ended = asyncio.Event(), list[str]()

    async def blocked() -> None:
        try:
            await never()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    waiting = asyncio.ensure_future(service.wait_first(blocked(), event.wait()))
    await asyncio.sleep(0)
    event.set()
    assert (await waiting).results == [True]
    await others_go_on()
    assert ended == ["cancelled"]


@started
async def test_an_error_is_passed_on(service: Bystander) -> None:
    async def fails(pauses: int) -> None:
        for _ in range(pauses):
            await asyncio.sleep(0)
        raise ValueError("no room")

    for pauses in (0, 1):
        with pytest.raises(ValueError, match="no room"):
            await service.wait_first(fails(pauses), never())


@pytest.mark.filterwarnings("ignore:coroutine")
@started
async def test_a_service_that_stops_does_not_wait(service: Bystander) -> None:
    waiting = asyncio.ensure_future(service.wait_first(never(), never()))
    await asyncio.sleep(0)
    await service.stop()
    assert (await waiting).stopped
    assert (await service.wait_first(never(), never())).stopped


@started
async def test_events_are_waited_for_as_ever(service: Bystander) -> None:
    event = asyncio.Event()
    waiting: asyncio.Future[Any] = asyncio.ensure_future(service.wait(event))
    await asyncio.sleep(0)
    event.set()
    assert not (await waiting).stopped
    assert (await service.wait(never(), timeout=0.01)).stopped
