"""Measures how soon the pipeline goes on when workers are killed, stopped or started again.

``make recovery`` or ``python -m tests.measure.recovery --help``. On a real Kafka, under a steady
stream, with the timeouts and the checkpoint interval that users get.
"""
