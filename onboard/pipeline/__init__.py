"""The stages of a job, one module per stage; `run` calls them in order."""
