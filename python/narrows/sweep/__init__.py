"""Sweeps: one scenario at many points of a parameter space, simulated in memory, stored as one data set."""
