"""The exit statuses by which a supervisor decides."""

import errno

import pytest
import typer

from fluxplain.cli.common import status_for_supervisor
from fluxplain.config import ConfigError
from fluxplain.errors import NotYetError
from fluxplain.kafka.client import AccessError, BrokerError
from fluxplain.kafka.exits import EXIT_FAILED, EXIT_NOT_YET, EXIT_REFUSED

STATUSES = [
    (NotYetError("no port"), EXIT_NOT_YET),
    (BrokerError("no answer"), EXIT_NOT_YET),
    (AccessError("denied"), EXIT_REFUSED),
    (OSError(errno.ENOSPC, "No space left on device", "out.jsonl"), EXIT_FAILED),
    (TimeoutError("slow"), EXIT_FAILED),
]


@pytest.mark.parametrize(("error", "status"), STATUSES, ids=str)
def test_what_a_restart_may_mend_has_its_own_status(
    error: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, status_for_supervisor():
        raise error
    assert ended.value.exit_code == status
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert str(error.args[-1]) in said


def test_a_mistake_is_left_to_the_command_line() -> None:
    with pytest.raises(ConfigError), status_for_supervisor():
        raise ConfigError("features is empty")
