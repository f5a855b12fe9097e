"""Stands before the real one, which fluxplain does not need and a plain installation lacks."""

raise ImportError("not in a plain installation")
