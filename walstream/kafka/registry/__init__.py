"""A schema registry: ids of a sink's schemas, asked in threads of their own."""
