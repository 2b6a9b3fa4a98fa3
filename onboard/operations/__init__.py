"""What keeps a service alive: who may do what, clearing up, backups, webhooks, metrics."""
