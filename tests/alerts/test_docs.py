"""What the documentation tells receivers to do."""

import doctest
from pathlib import Path


def test_the_documented_check_of_a_signature_works() -> None:
    readme = Path(__file__).parents[2] / "deploy" / "README.md"
    result = doctest.testfile(str(readme), module_relative=False)
    assert result.attempted >= 7
    assert result.failed == 0
