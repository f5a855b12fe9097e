"""Commands of the shell, as documents have them."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from fluxplain.cli import main

SEPARATORS = "|&;<>()"


def commands(text: str) -> Iterator[list[str]]:
    """Yield program and arguments of each simple command, without its variables.

    Examples
    --------
    >>> list(commands("SEED=1 make chaos  # or another\\nfluxplain tail \\\\\\n  changes | head"))
    [['make', 'chaos'], ['fluxplain', 'tail', 'changes'], ['head']]
    """
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=SEPARATORS)
        lexer.whitespace_split = True
        for separates, words in groupby(lexer, lambda word: set(word) <= set(SEPARATORS)):
            if not separates:
                command = list(words)
                while command and re.match(r"\w+=", command[0]):
                    del command[0]
                if command:
                    yield [Path(command[0]).name, *command[1:]]


def problem(arguments: list[str]) -> str | None:
    """Return why ``fluxplain`` does not take these arguments; None if it does."""
    try:
        _parser().main(args=arguments, prog_name="fluxplain", standalone_mode=False)
    except Exception as error:  # the parser's own kinds are not Typer's to import
        return f"fluxplain {shlex.join(arguments)}: {getattr(error, 'message', error)}"
    return None


@cache
def _parser() -> Any:
    """Return the command line without what it does."""
    return _idle(typer.main.get_command(vars(main)["app"]))


def _idle(command: Any) -> Any:
    for each in getattr(command, "commands", {}).values():
        _idle(each)
    command.callback = None
    return command
