"""Readable changes from Kafka, for those who look at topics: `walstream tail`.

`follow` reads, `shape` understands any record, `choice` picks, `screen` and `document`
render. Only `follow` and `ending` touch the world; nothing here is ever logged.
"""
