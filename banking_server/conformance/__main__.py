"""`python -m banking_server.conformance`."""

from banking_server.conformance.cli import main

main()
