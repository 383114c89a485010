"""The whole program from one seed: a simulated PostgreSQL, Kafka, disk and clock."""
