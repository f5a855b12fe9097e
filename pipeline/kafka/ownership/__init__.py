"""Who owns which partition, and with which settings: the topic ``register``."""
