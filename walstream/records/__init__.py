"""From an op to a record: topic, key, partition, encoding."""
