"""Positions in the application's database, and the batches that move them."""
