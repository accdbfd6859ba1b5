"""What a host starts: the bank over stdio, from the wheel beside this folder."""

from banking_server.cli import main

main()
