#!/usr/bin/env -S python3 -u
"""The receiver prints every chunk to standard error, and both print nonsense before they run."""

import socket
import sys

import arg_parser

words = arg_parser.words("receiver")
print("starting", words, file=sys.stderr)
if words[0] == "receiver":
    peer = socket.create_server(("", int(words[1]))).accept()[0]
    while chunk := peer.recv(1 << 20):
        print(f"{len(chunk)} bytes", file=sys.stderr)
elif words[0] == "sender":
    peer = socket.create_connection((words[1], int(words[2])))
    while True:
        peer.sendall(bytes(65536))
