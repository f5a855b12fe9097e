"""The dashboard: one page that shows live what the model relies on, and what changed.

Data flow one way: topics → :mod:`fluxplain.results.live_feed` → :mod:`fluxplain.results.store`
(in bounded memory) → :mod:`views` → :mod:`server` → the page.
"""
