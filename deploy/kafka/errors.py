"""The one kind of error that this package raises."""


class KafkaError(RuntimeError):
    """A problem that a user can fix; the message is one sentence."""
