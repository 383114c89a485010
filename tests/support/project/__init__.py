"""Checks and pages of the project itself, and parts of a long test run."""
