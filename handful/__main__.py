"""`python -m handful`."""

from .cli import main

main()
