"""The format `row` with typed columns: one schema for a polled table, in any encoding.

A record has what `row` in JSON has. What its column's type does not hold stands beside
the row, as JSON: so a reader gets back what JSON would have said, and the same hash.
"""
