"""A Debezium connector's configuration, translated: `walstream init --from`.

connector_file   reads the file: properties, Connect's JSON, Debezium Server's
translation      goes through every key, and accounts for each
document         writes the walstream.toml
"""
