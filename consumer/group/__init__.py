"""A member of a consumer group: what it fetches, and in which turns."""
