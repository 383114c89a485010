"""Sources of `kind = "postgres"`: a replication slot, streamed."""
