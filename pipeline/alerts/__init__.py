"""Alerts: changes that matter, sent to a webhook, alongside the pipeline and never within it."""
