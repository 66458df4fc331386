"""Cluster short texts: read files, compute features, name clusters, export to topic models."""
