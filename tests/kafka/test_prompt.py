"""A service that begins at once what it waits for, and else waits as Faust's do."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pipeline.kafka.prompt import PromptService


class Bystander(PromptService):
    """A service with nothing to do."""


def within(test: Callable[[Bystander], Awaitable[None]]) -> None:
    """Run a test with a service that has started."""

    async def run() -> None:
        async with Bystander() as service:
            await test(service)

    asyncio.run(run())


async def never() -> None:
    await asyncio.Event().wait()


def test_what_needs_no_waiting_is_done_without_a_task() -> None:
    async def test(service: Bystander) -> None:
        before = asyncio.all_tasks()

        async def at_once() -> str:
            assert asyncio.all_tasks() == before
            return "done"

        done = at_once()
        results = await service.wait_first(done, never())
        assert (results.done, results.results, results.stopped) == ([done], ["done"], False)
        assert asyncio.all_tasks() == before

    within(test)


def test_what_waits_is_waited_for_more_than_once() -> None:
    async def test(service: Bystander) -> None:
        events = [asyncio.Event() for _ in range(3)]
        passed: list[int] = []

        async def slowly() -> str:
            for i, event in enumerate(events):
                await event.wait()
                passed.append(i)
            return "done"

        waiting = asyncio.ensure_future(service.wait_first(slowly(), never()))
        for i, event in enumerate(events):
            assert passed == list(range(i))
            event.set()
            for _ in range(3):
                await asyncio.sleep(0)
        results = await waiting
        assert results.results == ["done"]
        assert not results.stopped

    within(test)


def test_what_is_not_done_first_is_cancelled() -> None:
    async def test(service: Bystander) -> None:
        event, ended = asyncio.Event(), []

        async def blocked() -> None:
            try:
                await never()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        waiting = asyncio.ensure_future(service.wait_first(blocked(), event.wait()))
        await asyncio.sleep(0)
        event.set()
        results = await waiting
        assert results.results == [True]
        for _ in range(3):
            await asyncio.sleep(0)
        assert ended == ["cancelled"]

    within(test)


@pytest.mark.parametrize("pauses", [0, 1])
def test_an_error_is_passed_on(pauses: int) -> None:
    async def test(service: Bystander) -> None:
        async def fails() -> None:
            for _ in range(pauses):
                await asyncio.sleep(0)
            raise ValueError("no room")

        with pytest.raises(ValueError, match="no room"):
            await service.wait_first(fails(), never())

    within(test)


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_service_that_stops_does_not_wait() -> None:
    async def test(service: Bystander) -> None:
        waiting = asyncio.ensure_future(service.wait_first(never(), never()))
        await asyncio.sleep(0)
        await service.stop()
        assert (await waiting).stopped
        assert (await service.wait_first(never(), never())).stopped

    within(test)


def test_events_are_waited_for_as_ever() -> None:
    async def test(service: Bystander) -> None:
        event = asyncio.Event()
        waiting: asyncio.Future[Any] = asyncio.ensure_future(service.wait(event))
        await asyncio.sleep(0)
        event.set()
        assert not (await waiting).stopped
        assert (await service.wait(never(), timeout=0.01)).stopped

    within(test)
