"""A day of an installation with many jobs an hour, in minutes."""
