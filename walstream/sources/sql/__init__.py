"""Polling of append-only tables of any SQL database, by an increasing integer key.

`source` is a worker's part, with a thread for each table; `poller` one table, from what
is stored of it to the ranges that are read; `order` what Spark is told of them.
"""
