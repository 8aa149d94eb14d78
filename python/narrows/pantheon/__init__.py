"""Results of Pantheon: imports of its data folders, and exports of campaigns to such folders."""
