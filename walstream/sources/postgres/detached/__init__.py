"""Sinks that left their source's stream: kept, streamed to from a copied slot, back."""
