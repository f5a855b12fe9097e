"""The dashboard: one page that shows live what the model relies on, and what changed.

Data flow one way: topics → :mod:`feed` → :mod:`state` (in bounded memory) → :mod:`views` →
:mod:`server` → the page. ``fluxplain streams`` shows the :mod:`overview` of the same state.
"""
