"""A thread that feeds one partition at a steady rate."""

from collections.abc import Iterable
from threading import Event, Thread

from fluxplain.config import Config
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from fluxplain.schemas.late_label import LabelValue
from tests.kit.waiting import FailedError


class Feed(Thread):
    """Feeds one partition until there is nothing more, or it is closed.

    `rate` limits records a second; None for as fast as it goes.
    """

    def __init__(
        self,
        config: Config,
        partition: int,
        values: Iterable[bytes | LabelValue],
        rate: float | None,
    ) -> None:
        super().__init__(name=f"feed-{partition}", daemon=True)
        self._error: Exception | None = None
        self._config, self._values = config, values
        self._options = ReplayOptions(partition=partition, rate=rate)
        self._stopping = Event()

    def run(self) -> None:
        try:
            replay(self._config, self._values, self._options, stop=self._stopping)
        except Exception as error:
            self._error = error

    def check(self) -> None:
        if self._error:
            raise FailedError(f"the stream cannot be fed: {self._error}")

    def close(self) -> None:
        self._stopping.set()
        if self.ident is not None:
            self.join()
