"""Commands of an operator: init, check, reset, rewind, slots, backfill requests."""
