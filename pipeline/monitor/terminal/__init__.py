"""Views of published records for a terminal."""
