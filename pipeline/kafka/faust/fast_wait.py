"""Waiting that costs nothing where there is nothing to wait for."""

import inspect
import types
from collections.abc import Coroutine, Generator, Iterable
from functools import partial
from typing import Any

from mode import Service
from mode.services import WaitResults


class FastWaitService(Service):
    """A service of Faust's that begins what it waits for at once.

    Its consumer hands on each message so: there is almost always room for it.
    """

    async def wait_first(self, *coros: Any, timeout: Any = None) -> Any:
        """Wait for one of some; a message is handed on at once where there is room for it.

        Faust makes four tasks for each message, to hear meanwhile that it must stop: more work than
        all the rest that it does.
        """
        first, *others = coros
        if timeout is not None or self.should_stop or not inspect.iscoroutine(first):
            return await super().wait_first(*coros, timeout=timeout)
        try:
            waits_for = first.send(None)
        except StopIteration as done:
            _close(others)
            return WaitResults([first], [done.value], False)
        except BaseException:
            _close(others)
            raise
        return await super().wait_first(_rest(first, waits_for), *others)


def _close(coros: Iterable[Any]) -> None:
    for each in coros:
        if inspect.iscoroutine(each):
            each.close()


async def _rest(begun: Coroutine[Any, Any, Any], waits_for: Any) -> Any:
    """Do the rest of what has begun, and waits for something."""
    return await _going_on(begun, waits_for)


@types.coroutine
def _going_on(begun: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    while True:
        try:
            answer = yield waits_for
        except BaseException as error:
            step = partial(begun.throw, error)
        else:
            step = partial(begun.send, answer)
        try:
            waits_for = step()
        except StopIteration as done:
            return done.value
