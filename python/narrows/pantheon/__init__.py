"""Results of Pantheon: its data folders into campaigns of ours, and campaigns out into such folders."""
