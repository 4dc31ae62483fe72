"""`python -m handful`."""

from handful.cli import main

main()
