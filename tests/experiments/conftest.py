"""What the experiments' tests need."""

import pytest

from tests.experiments.streams import elec2


@pytest.fixture
def elec2_is_there() -> None:
    """Skip a test where the data is not."""
    try:
        elec2()
    except FileNotFoundError as error:
        pytest.skip(str(error))
