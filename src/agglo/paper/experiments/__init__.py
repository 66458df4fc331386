"""The tables and figures of the paper, each by one command; ``python -m agglo.paper --help`` says how."""
