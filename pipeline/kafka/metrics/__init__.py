"""Prometheus metrics of a worker, at ``/metrics`` of its health server."""
