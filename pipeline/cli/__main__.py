"""The command line as ``python -m fluxplain.cli``; workers are started so."""

from fluxplain.cli.main import main

main()
