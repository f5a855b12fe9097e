"""What people look at: the terminal, the demo's summary and figures, from published records."""
