"""Backfill of a source: existing rows, under a snapshot of a slot.

Chunks run on Spark in a process of its own. What is left is kept beside the position;
a start that finds some of it streams up to a new snapshot, and reads the rest there.
"""
