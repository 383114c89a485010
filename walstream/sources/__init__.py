"""What runs a source: a package for each `kind` of walstream.toml."""
