"""Runners of sources: a package for each `kind` of walstream.toml."""
