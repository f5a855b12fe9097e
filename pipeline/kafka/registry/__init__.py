"""Values in the wire format of a schema registry, where one is configured: read, and written."""
