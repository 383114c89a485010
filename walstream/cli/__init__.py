"""The command line: one module a verb, which parses, calls and prints."""
