"""Text classification from a handful of examples."""
