"""What the pipeline published, read back in bounded memory: one store for all faces."""
