#!/usr/bin/env python3
"""The receiver listens, over TCP."""

import socket
import sys

import arg_parser


def main() -> None:
    """Executes one word."""
    words = arg_parser.words("receiver")
    if words == ["deps"]:
        print("coreutils")
    elif words[0] == "receiver":
        peer = socket.create_server(("", int(words[1]))).accept()[0]
        while peer.recv(65536):
            pass
    elif words[0] == "sender":
        peer = socket.create_connection((words[1], int(words[2])))
        while True:
            peer.sendall(bytes(65536))
    elif words[0] not in ("setup", "setup_after_reboot"):
        sys.exit(f"unknown word {words[0]}")


if __name__ == "__main__":
    main()
