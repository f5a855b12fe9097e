"""What the pipeline published, in a terminal."""
