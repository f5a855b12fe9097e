"""What the tests of measuring programs with real data need."""

import os

import pytest

from tests.measure.experiments.streams import elec2, weather


@pytest.fixture
def data_is_there() -> None:
    """Skip a test where the data is not; CI has it."""
    try:
        elec2()
        weather()
    except FileNotFoundError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
