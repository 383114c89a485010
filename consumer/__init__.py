"""The consumer library: each change handled at least once, or exactly once.

It depends on nothing of walstream but `op`, `row`, `lsn`, `formats` and `errors`, so
that an application which imports it never loads Spark.
"""
