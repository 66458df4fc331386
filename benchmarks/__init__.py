"""What agglo costs and what it is worth, measured."""
