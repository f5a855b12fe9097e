"""Measures whether what is behind a change is named rightly: its cause, its region, its records,
and an earlier period that comes back.

``python -m tests.measure.behind`` prints how many of the runs name it; see ``--help``.
"""
