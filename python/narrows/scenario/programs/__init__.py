"""External programs as schemes: manifests, their locations, and their form in cells."""
