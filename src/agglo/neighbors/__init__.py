"""Nearest neighbours, and the neighbour graph."""
