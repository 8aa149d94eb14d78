"""Numbers over runs: statistics, the summary per scheme, tables for people."""
