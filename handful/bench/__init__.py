"""Benchmarks on the paper's grid of methods and data sets: cells, running, results, costs, tables."""
