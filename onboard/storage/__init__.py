"""Content-addressed artifacts, the files that they are stored in, and the file of an embedding."""
