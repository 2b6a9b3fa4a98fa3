"""The doorbell: one small Celery message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onboard.settings import Settings


class CeleryDoorbell:
    """Sends doorbell messages with Celery, which is imported on first use."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: Any = None

    def ring(self, queue: str) -> None:
        """Send one doorbell message, with a timeout of seconds.

        Raises:
            UnavailableError: the broker cannot be used.
            InputError: the broker's URL is invalid.
        """
        from kombu.exceptions import KombuError, OperationalError

        from onboard.broker.app import broker_queue, make_app
        from onboard.broker.bells import BELL
        from onboard.broker.trouble import trouble
        from onboard.errors import InputError

        if self._app is None:
            self._app = make_app(self._settings)
        name = broker_queue(queue)
        connection = self._app.connection_for_write()
        try:
            with connection:
                # A new connection each time, so that none is stale after the broker restarts.
                self._app.send_task(
                    BELL, queue=name, routing_key=name, exchange="", declare=[], retry=False, connection=connection
                )
        except (OperationalError, KombuError, OSError, *connection.channel_errors) as error:
            raise trouble(error, self._settings.resolved_broker_url) from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:  # raised by libraries for an invalid URL
            raise InputError("broker-url-unusable", name=type(error).__name__) from None
