"""Bytes by their digest: artifacts, the files they lie in, and the file of an embedding."""
