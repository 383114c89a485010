"""A running instance: supervisor, worker processes, control socket, HTTP."""
