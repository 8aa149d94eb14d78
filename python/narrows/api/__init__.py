"""The parts of the public interface, `import narrows`; they are reached through the package itself."""
