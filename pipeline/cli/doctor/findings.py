"""What `fluxplain doctor` finds, and how checks run so that no problem hides another."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from rich.text import Text

from fluxplain.cli import common as cli
from fluxplain.errors import UserError
from fluxplain.schemas.wording import printable

State = Literal["ok", "warning", "problem"]

STYLES: dict[State, str] = {"ok": "green", "warning": "yellow", "problem": "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the list: what was found, and what to do unless all is well."""

    state: State
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return what was found, with the remedy."""
        return f"{self.what}. {self.remedy}" if self.remedy else self.what


Check = Callable[[], Iterable[Finding]]


def ok(what: str) -> Finding:
    """Return what is well."""
    return Finding("ok", what)


def examine(checks: Iterable[Check]) -> Iterator[Finding]:
    """Yield the findings of all checks; a user's mistake in one becomes a problem."""
    for check in checks:
        try:
            yield from check()
        except UserError as error:
            yield Finding("problem", str(error))
        except OSError as error:
            yield Finding("problem", cli.of_system(error))
        except SystemExit as error:
            what = f"code that the settings name ended the program ({type(error).__name__})"
            yield Finding("problem", what, "A worker would end, too: let it raise an error")
        except Exception as error:
            yield Finding("problem", f"the check failed: {type(error).__name__}: {_text(error)}")


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "an error without a text"


def show(finding: Finding) -> None:
    """Print a finding, its state first."""
    state = Text(f"{finding.state:<8}", style=STYLES[finding.state])
    cli.console.print(Text.assemble(state, printable(str(finding))), soft_wrap=True)
