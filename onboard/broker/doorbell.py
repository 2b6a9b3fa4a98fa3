"""The real doorbell: one tiny Celery message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onboard.settings import Settings


class CeleryDoorbell:
    """Rings through Celery's broker. Celery is imported at the first ring."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: Any = None

    def ring(self, queue: str) -> None:
        """Ring once. Gives up within seconds: raises UnavailableError when the broker cannot be used, InputError when
        its URL names none.
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
                # a connection of its own: nothing is kept open, and nothing stale is used after a broker's restart
                self._app.send_task(
                    BELL, queue=name, routing_key=name, exchange="", declare=[], retry=False, connection=connection
                )
        except (OperationalError, KombuError, OSError, *connection.channel_errors) as error:
            raise trouble(error, self._settings.resolved_broker_url) from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:  # of libraries, about what the URL says
            raise InputError("broker-url-unusable", name=type(error).__name__) from None
