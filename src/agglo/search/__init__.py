"""Ways to find the neighbours of points, each in a module of its own."""
