"""Topics: creating, reading and feeding them, and the progress of the roles."""
