"""The library of references of `narrows identify`, and how often names are right."""
