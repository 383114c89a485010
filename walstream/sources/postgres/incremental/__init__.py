"""Old rows of tables beside a running stream, which never waits for them."""
