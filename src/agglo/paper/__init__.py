"""The methods that the paper compares with SCC, its datasets and its experiments."""
