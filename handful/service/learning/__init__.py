"""All that is learned from projects: models, predictions, estimates, suggestions, maps and probable mistakes.

Everything is computed from the store and kept in memory only, so that any process comes to the same result.
"""
