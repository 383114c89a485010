"""Each call that changes state, killed before and after, and made to fail."""
