"""The dashboard: a live web page of importances, effects, changes and reasons.

Data flows one way: topics → :mod:`fluxplain.results.live_feed` → :mod:`fluxplain.results.store`
(in bounded memory) → :mod:`views` → :mod:`server` → the page.
"""
