"""The state folder: the LMDB store, its lock, the control socket's address."""
