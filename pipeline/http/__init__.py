"""What the servers of workers and dashboard share."""
