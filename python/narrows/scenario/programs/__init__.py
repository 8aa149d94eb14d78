"""Programs of others as schemes: manifests, where they are kept, and what cells are told of them."""
