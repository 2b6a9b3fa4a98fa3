"""Webhooks: notify other services of published versions and moved aliases (docs/how-to/webhooks.md)."""

from onboard.operations.webhooks.deliver import deliver, give_up

__all__ = ["deliver", "give_up"]
