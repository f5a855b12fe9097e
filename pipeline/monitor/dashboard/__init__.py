"""The dashboard: one page that shows live what the model relies on, and what changed.

Data flow one way: topics → :mod:`pipeline.results.feed` → :mod:`pipeline.results.store` (in bounded
memory) → :mod:`views` → :mod:`server` → the page.
"""
