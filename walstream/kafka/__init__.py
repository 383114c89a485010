"""Kafka: the topics, and the sink that produces to them.

The only door to confluent_kafka in the streaming process.
"""
