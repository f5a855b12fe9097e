"""Sends the messages of dead letters again, each once and only if it would be accepted now."""
