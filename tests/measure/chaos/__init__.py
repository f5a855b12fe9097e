"""Disturbs everything while a stream runs, and checks what was published.

``make chaos`` or ``python -m tests.measure.chaos --help``. The roles run as worker processes on
three brokers. A seeded schedule kills workers and brokers, one by one and all at once, adds,
removes and pauses workers, has the brokers refuse the writes of a topic, freezes the worker that
writes there, adds partitions, writes poison and bombs into every topic, and starts workers with
other settings.

Two verifiers read all that is published. One compares it, bit for bit, with the local pipeline. The
other one knows only what a consumer knows: each observation and label that a broker accepted has a
prediction or a dead letter, and no identity has two contents. The seed also says where the
checkpoints are: both stores are tested.
"""
