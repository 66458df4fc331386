"""Clusterers with the conventions of scikit-learn."""
