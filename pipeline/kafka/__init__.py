"""Kafka: workers, checkpoints, topics, producer, embedded broker."""
