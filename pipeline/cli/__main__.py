"""The command line as ``python -m pipeline.cli``; workers are started so."""

from pipeline.cli.main import main

main()
