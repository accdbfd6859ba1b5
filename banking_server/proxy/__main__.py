"""`python -m banking_server.proxy` is `tool-chaining-proxy`."""

from banking_server.proxy.cli import main

if __name__ == "__main__":
    main()
