"""The tunnel against the path without it: the same kernel schemes, inside and outside, as observed by the
path itself.

    namespace 1 (sender)                emulated path                namespace 0 (receiver)
    outside: TCP ---------------------- packets of 1500 ------------- TCP
    inside:  TCP - tunnel ------------- datagrams of 1500 ----------- tunnel - TCP

The instrument is the emulated path, which records every packet, identically for both; the tunnel's own logs
are compared with it.
"""
