"""The format `op` as a tree of Connect's schemas, for any encoding; and read again.

A reader gets the op back as it was, with PostgreSQL's texts: a value has a type where
that holds what the text says, and is a text elsewhere. What a type holds nearly always,
as a numeric(8,2) does all but NaN, is a text beside the row when it does not.
"""
