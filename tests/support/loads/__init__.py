"""Who writes: loads on databases, and records made by hand."""
