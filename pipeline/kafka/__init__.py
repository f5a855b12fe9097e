"""Kafka: the embedded broker, topics, producer, checkpoints, and the commit protocol."""
