"""Use cases: back up a running service consistently, and restore it into an empty service.

    DIR/manifest.json        its contents: schema, tables with their parts, counts; written last
    DIR/sha256/ab/abcd…      bytes by their digest: the artifacts, and the tables as gzipped JSON lines

A single-file backup is a zip archive with the same contents. The format is independent of the database (SQLite or
PostgreSQL) and the store (folder or object store).
"""
