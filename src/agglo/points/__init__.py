"""Validation and preparation of the points that a user passes in."""
