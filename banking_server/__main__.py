"""`python -m banking_server` is `banking-server`."""

from banking_server.cli import main

if __name__ == "__main__":
    main()
