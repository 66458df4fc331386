"""The tree, and flat clusterings cut out of it."""
