"""Prefixes of the names of schemes that are not ours, and the name of datagrams without a scheme."""

#: The prefix of the kernel's schemes, followed by the kernel's name.
KERNEL_PREFIX = "linux:"
#: The prefix of our programs for the kernel, and of those in object files.
BPF_PREFIX = "bpf:"
#: The scheme of datagrams that no congestion control governs.
UDP = "udp"
