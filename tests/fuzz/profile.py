"""How many examples: few and always the same ones in the tests, many new ones for ``make fuzz``."""

import os

from hypothesis import settings

from tests.kit.support import PROPERTY, SLOW_PROPERTY

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
"""Examples of each property; 0 for those of every test run."""

FUZZ = (
    settings(PROPERTY, max_examples=EXAMPLES, derandomize=False, print_blob=True)
    if EXAMPLES
    else PROPERTY
)

SLOW_FUZZ = settings(FUZZ, max_examples=EXAMPLES // 5 or SLOW_PROPERTY.max_examples)
