"""The papers' theorems as tests, on data whose distribution is known.

Every test is seeded. Its tolerance is what chance exceeds with a probability of at most
:data:`~tests.theory.bounds.FALSE_ALARM`, whatever the seed.
"""
