"""The command line, ``fluxplain``: one file for each kind of command."""
