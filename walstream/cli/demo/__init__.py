"""`walstream demo`: the real thing on throw-away servers, one crash included, counted.

What was written is counted by triggers inside of PostgreSQL, what arrived by reading
the topics: walstream's own counters have no say.
"""
