"""Sweeps: one scenario at many points of a space of parameters, simulated in memory, kept as one data set."""
