"""Short texts: features, names of clusters, topic models."""
