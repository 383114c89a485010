"""Spark: existing rows, read in chunks by tasks, sent as the stream sends.

Only `session` starts a JVM; what the tasks import does not know of Spark at all.
"""
