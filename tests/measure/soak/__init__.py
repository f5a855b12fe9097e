"""Shows that the pipeline stays as large as it is, however long its stream.

``make soak`` or ``python -m tests.measure.soak --help``. Half a million records go through worker
processes of every role on a real Kafka, while their memory, files and threads are sampled.

The model is of a fixed size: many of River's grow with what they have learned (trees split, a
forest starts trees in the background), and their growth would hide the pipeline's own. All else
that a worker keeps has a limit of its own: reservoirs, storages, curves, runs, and windows of
ADWIN, which grow with the logarithm of the stream.
"""
