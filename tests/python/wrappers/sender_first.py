#!/usr/bin/env python3
"""The sender listens, over UDP, and sends once it has been called."""

import socket
import time

import arg_parser


def main() -> None:
    """Executes one word."""
    words = arg_parser.words("sender")
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if words[0] == "sender":
        peer.bind(("", int(words[1])))
        address = peer.recvfrom(100)[1]
        while True:
            peer.sendto(bytes(1200), address)
            time.sleep(0.002)
    elif words[0] == "receiver":
        peer.sendto(b"hello", (words[1], int(words[2])))
        while peer.recv(2000):
            pass


if __name__ == "__main__":
    main()
