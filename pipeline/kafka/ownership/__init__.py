"""The owners of partitions and the registered settings: the topic ``register``."""
