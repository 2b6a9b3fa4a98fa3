"""Files of any number of rows answered shard by shard: planned once, written whole, gone on with where it stopped."""
