"""FastWaitService runs an awaited coroutine at once, and otherwise waits as Faust's services do."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fluxplain.kafka.faust.fast_wait import FastWaitService

Test = Callable[[FastWaitService], Awaitable[None]]


def started(test: Test) -> Callable[[], None]:
    """Run a test with a service that has started."""

    def run() -> None:
        async def with_service() -> None:
            async with FastWaitService() as service:
                await test(service)

        asyncio.run(with_service())

    run.__name__ = test.__name__
    return run


async def never() -> None:
    await asyncio.Event().wait()


async def let_others_run() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@started
async def test_a_coroutine_that_need_not_wait_gets_no_task(service: FastWaitService) -> None:
    before = asyncio.all_tasks()

    async def at_once() -> str:
        assert asyncio.all_tasks() == before
        return "done"

    done = at_once()
    results = await service.wait_first(done, never())
    assert (results.done, results.results, results.stopped) == ([done], ["done"], False)
    assert asyncio.all_tasks() == before


@started
async def test_a_coroutine_may_wait_more_than_once(service: FastWaitService) -> None:
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
        await let_others_run()
    results = await waiting
    assert (results.results, results.stopped) == (["done"], False)


@started
async def test_the_coroutine_that_is_not_first_is_cancelled(service: FastWaitService) -> None:
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
    await let_others_run()
    assert ended == ["cancelled"]


@started
async def test_an_error_is_passed_on(service: FastWaitService) -> None:
    async def fails(pauses: int) -> None:
        for _ in range(pauses):
            await asyncio.sleep(0)
        raise ValueError("no room")

    for pauses in (0, 1):
        with pytest.raises(ValueError, match="no room"):
            await service.wait_first(fails(pauses), never())


@pytest.mark.filterwarnings("ignore:coroutine")
@started
async def test_a_service_that_stops_does_not_wait(service: FastWaitService) -> None:
    waiting = asyncio.ensure_future(service.wait_first(never(), never()))
    await asyncio.sleep(0)
    await service.stop()
    assert (await waiting).stopped
    assert (await service.wait_first(never(), never())).stopped


@started
async def test_events_are_awaited_as_in_faust(service: FastWaitService) -> None:
    event = asyncio.Event()
    waiting: asyncio.Future[Any] = asyncio.ensure_future(service.wait(event))
    await asyncio.sleep(0)
    event.set()
    assert not (await waiting).stopped
    assert (await service.wait(never(), timeout=0.01)).stopped
