"""The registry: the only place with SQL. Use cases open a transaction and hand its session to a repository."""
