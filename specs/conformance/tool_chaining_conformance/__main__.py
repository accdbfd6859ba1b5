"""`python -m tool_chaining_conformance`."""

from tool_chaining_conformance.cli import main

main()
