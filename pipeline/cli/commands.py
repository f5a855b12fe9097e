"""The app with all commands; each module adds its own, and ``--help`` shows them in this order."""

from fluxplain.cli import main  # noqa: F401  adds --version
from fluxplain.cli.common import app as app  # noqa: PLC0414  for those who need all commands

from fluxplain.cli import init, setup, checkpoint_commands  # noqa: F401 # isort: skip
from fluxplain.cli.doctor import command  # noqa: F401 # isort: skip
from fluxplain.cli import model_commands, model_rollback, run, feed, try_file  # noqa: F401 # isort: skip
from fluxplain.cli import live, look, note_commands, why, dead_letters, plot, export  # noqa: F401 # isort: skip
