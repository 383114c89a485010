"""Servers and surroundings that the tests start or stand in for."""
