"""Data sets larger than memory: Parquet in, values as Parquet out, in passes that resume."""
