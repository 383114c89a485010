"""Programs under test, each driven as its users drive it."""
