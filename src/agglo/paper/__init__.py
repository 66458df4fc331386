"""Every method and experiment of the paper that agglo implements."""
