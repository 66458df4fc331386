"""The tables and figures of the paper, each by one command; ``python -m benchmarks.paper --help`` says how."""
