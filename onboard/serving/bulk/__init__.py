"""Answer files with any number of rows, shard by shard; shards are written atomically, and runs can be resumed."""
