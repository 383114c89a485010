"""Kafka to Kafka: the records of another walstream, passed on as they are.

A member of a consumer group reads; each sink puts every record into the partition of
the same number; offsets are stored when all sinks have delivered.
"""
