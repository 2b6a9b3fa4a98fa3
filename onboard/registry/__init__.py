"""The registry: the only package with SQL. Use cases open a transaction and pass its session to a repository."""
