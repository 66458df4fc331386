"""The experiments behind the tables and figures of the paper; see ``python -m agglo.paper --help``."""
