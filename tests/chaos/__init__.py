"""Kills, restarts and pauses everything while a stream runs, and compares what was published.

``make chaos`` or ``python -m tests.chaos --help``. The roles run as worker processes on three
brokers; a seeded schedule kills workers and brokers, adds, removes and pauses workers; a verifier
reads all that is published and compares it, bit for bit, with the local pipeline. The seed also
says where the checkpoints are: both stores are tested.
"""
