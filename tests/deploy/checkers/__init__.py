"""What runs containers, pods and units is asked whether it would take the files in ``deploy/``.

None of them runs here: there is no Docker engine, no cluster, no systemd. Their own checkers can be
had from package registries, and so can the schemas of what extends Kubernetes.
"""
