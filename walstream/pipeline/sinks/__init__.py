"""Sinks that wrap another sink, or stand in for one."""
