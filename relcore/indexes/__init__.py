"""Vector indexes as sources and targets, read and written in blocks: faiss, Qdrant, LanceDB, Parquet."""
