"""One role of the pipeline: its partitions, the commit protocol, what goes out, and its health."""
