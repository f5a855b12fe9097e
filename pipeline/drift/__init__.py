"""Change detection over explanations and losses."""
