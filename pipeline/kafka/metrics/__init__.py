"""What a worker tells Prometheus, at ``/metrics`` of its health server."""
