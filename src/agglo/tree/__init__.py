"""The tree of clusters, its cuts into flat clusterings, and its file format."""
