"""Benchmarks. Each prints ratios that were taken in one run."""
