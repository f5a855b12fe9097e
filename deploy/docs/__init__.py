"""The documentation's pages, and the generators of their reference tables.

``python -m deploy.docs`` regenerates the parts of the pages between a comment that names the part
and ``<!-- end -->``.
"""
