"""A version as files that other programs read, without Onboard."""
