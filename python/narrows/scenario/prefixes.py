"""Prefixes of the names of schemes that are not ours, and the name of the one that is none."""

#: The kernel's schemes are named by this prefix and the kernel's own name.
KERNEL_PREFIX = "linux:"
#: Our programs for the kernel, and those in object files, are named by this prefix.
BPF_PREFIX = "bpf:"
#: The scheme of datagrams that no congestion control governs.
UDP = "udp"
