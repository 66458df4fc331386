"""Rounds of merging: from a neighbour graph to a tree."""
