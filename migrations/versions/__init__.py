"""The revisions, one file each, named by date."""
