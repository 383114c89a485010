"""Asks servers and state folders how sources are, where no instance reports it."""
