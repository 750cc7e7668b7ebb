"""From a dataset to spaces: what the Spaces page shows of encoding and of the store."""
