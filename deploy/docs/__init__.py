"""The documentation's pages, and what writes into them what stands in the code.

``python -m deploy.docs`` writes those parts anew, between a comment that names the part and
``<!-- end -->``.
"""
