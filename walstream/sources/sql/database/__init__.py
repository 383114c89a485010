"""Reading append-only tables of any database that SQLAlchemy reaches.

Everything here is used within `engine.session`, which makes a driver's errors ours.
"""
