"""Spaces of any number of rows: a folder of shards is one space, and all work on it runs shard by shard."""
