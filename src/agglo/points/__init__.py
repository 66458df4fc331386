"""Points: what a user passes in, checked once."""
