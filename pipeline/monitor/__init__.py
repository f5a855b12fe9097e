"""Terminal views, dashboard and figures of published records."""
