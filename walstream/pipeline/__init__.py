"""The loop from payload to delivery to confirmation, and its parts."""
