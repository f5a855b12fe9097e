"""The one kind of error that this package raises."""


class KafkaError(RuntimeError):
    """Something that a person can mend; the message says what, in a sentence."""
