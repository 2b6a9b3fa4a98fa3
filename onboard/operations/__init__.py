"""Operation of a service: access, garbage collection, retention, backups, webhooks and metrics."""
