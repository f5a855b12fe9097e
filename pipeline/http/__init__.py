"""Shared by the HTTP servers of workers and dashboard."""
