"""A saved classifier for other programs, in the protocols that they speak."""
