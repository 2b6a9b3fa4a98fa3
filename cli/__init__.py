"""The command line: `onboard`, with one file per command group."""
