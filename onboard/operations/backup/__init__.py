"""Use cases: a consistent copy of a running service, and an empty service made to what the copy says.

    DIR/manifest.json        what the backup holds: schema, tables with their parts, counts; written last
    DIR/sha256/ab/abcd…      bytes by their digest: the artifacts, and the tables as gzipped JSON lines

The same in one file is a zip archive. It is engine-neutral: SQLite and PostgreSQL, folder and object store are read
into the same form.
"""
