"""Alerts: changes that matter, sent to a webhook, beside the pipeline and never within it."""
