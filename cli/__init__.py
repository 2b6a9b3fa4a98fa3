"""The command line: `onboard`, one file a command group."""
