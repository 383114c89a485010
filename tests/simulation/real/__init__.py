"""The simulated servers held against the real ones: the same acts, the same history."""
