"""What every repository works in."""

from __future__ import annotations

from sqlalchemy.orm import Session


class Repository:
    """Reads and writes rows in the transaction of whoever opened the session, and never commits."""

    def __init__(self, session: Session) -> None:
        self._session = session
