"""Webhooks: tell the services outside of versions that were published and aliases that moved (docs/how-to/webhooks.md)."""

from onboard.operations.webhooks.deliver import deliver, give_up

__all__ = ["deliver", "give_up"]
