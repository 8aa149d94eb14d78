"""Addresses with ports, as the agent writes them."""

from __future__ import annotations

import ipaddress


def socket_address(ip: str, port: int) -> str:
    """As the agent writes addresses."""
    return f"[{ip}]:{port}" if ipaddress.ip_address(ip).version == 6 else f"{ip}:{port}"


def split_address(text: str) -> tuple[str, int]:
    """The opposite."""
    ip, _, port = text.rpartition(":")
    return ip.strip("[]"), int(port)
