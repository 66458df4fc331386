"""Benchmarks that asv runs for each commit; see benchmarks/README.md."""
