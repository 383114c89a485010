"""What an operator asks for: init, check, reset, rewind, slots, backfill requests."""
