"""What requests and answers look like, with the field names of the commands' `--json`."""
