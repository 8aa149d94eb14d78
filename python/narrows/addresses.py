"""Network addresses, and addresses with ports, in the agents' notation."""

from __future__ import annotations

import ipaddress


def socket_address(ip: str, port: int) -> str:
    """An address with a port: `192.0.2.7:53`, `[2001:db8::7]:53`."""
    return f"[{ip}]:{port}" if ipaddress.ip_address(ip).version == 6 else f"{ip}:{port}"


def split_address(text: str) -> tuple[str, int]:
    """The address and the port of `socket_address`."""
    ip, _, port = text.rpartition(":")
    return ip.strip("[]"), int(port)


def is_address(text: str) -> bool:
    """True for a printable IP address."""
    try:
        return text.isprintable() and bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def is_socket_address(text: str) -> bool:
    """True for a text in the form of `socket_address`."""
    try:
        ip, port = split_address(text)
        return socket_address(ip, port) == text and 0 <= port < 1 << 16 and text.isprintable()
    except ValueError:
        return False
