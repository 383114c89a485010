"""PostgreSQL: catalog, publication, slot, and the stream of a slot.

The only door to psycopg in the streaming process.
"""
