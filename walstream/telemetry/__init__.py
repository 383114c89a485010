"""Logs, counters and units: what is told of a running instance."""
