"""The revisions, one dated file each."""
