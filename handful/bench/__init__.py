"""Benchmarks: data sets, the grid of runs, tables."""
