"""The parts of the public interface `import narrows`; use them through the package itself."""
