"""The command line as ``python -m fluxplain.cli``; the supervisor starts workers with it."""

from fluxplain.cli.main import main

main()
