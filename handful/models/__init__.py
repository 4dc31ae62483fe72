"""The method and its alternatives: signatures, attention, representations, heads, and the model that combines them."""
