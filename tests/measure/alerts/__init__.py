"""Measures which alerts fire on a live pipeline, and when: ``python -m tests.measure.alerts``.

Each scenario has a pipeline of its own: an embedded broker, the product's workers and dashboard as
processes, a steady stream, and a Prometheus with the rules of ``deploy/grafana/alerts.yaml`` as
they are shipped. A scenario makes one thing go wrong; the alerts that fire are compared with those
that should. ``results`` has the table.
"""
