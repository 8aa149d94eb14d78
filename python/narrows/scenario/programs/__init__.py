"""External programs as schemes: manifests, where they are kept, and how cells describe them."""
