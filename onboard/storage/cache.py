"""What was loaded lately stays in memory: the one cache of everything that has a key and never changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Loaded = TypeVar("Loaded")


class Cache(Generic[Key, Loaded]):
    """What was used last, by key. Safe in threads.

    Args:
        most: entries that stay; of what is weighed, how much all that stays weighs together.
        forgotten: called after entries have left, to give back what they held.
        weigh: what an entry weighs, in bytes for instance. What alone weighs more than `most` stays until the next.
    """

    def __init__(
        self,
        most: int,
        forgotten: Callable[[], object] = lambda: None,
        weigh: Callable[[Loaded], int] = lambda _: 1,
    ) -> None:
        self._most, self._forgotten, self._weigh = most, forgotten, weigh
        self._weight = 0
        self._entries: OrderedDict[Key, Loaded] = OrderedDict()
        self._lock, self._loading = threading.RLock(), threading.Lock()

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    @property
    def weight(self) -> int:
        """What all that is here weighs together."""
        return self._weight

    def find(self, key: Key) -> Loaded | None:
        """What belongs to the key, if it is here."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def keep(self, key: Key, entry: Loaded) -> None:
        """Have it here; what was not used for longest leaves."""
        with self._lock:
            if key in self._entries:
                self._weight -= self._weigh(self._entries.pop(key))
            weight = self._weigh(entry)
            self._shrink(self._most - weight)
            self._entries[key] = entry
            self._weight += weight

    def get(self, key: Key, load: Callable[[], Loaded]) -> Loaded:
        """What belongs to the key, loaded if need be; two threads may load the same at once."""
        entry = self.find(key)
        if entry is None:
            entry = load()
            self.keep(key, entry)
        return entry

    def get_alone(self, key: Key, load: Callable[[], Loaded]) -> Loaded:
        """The same of what is large: one is loaded at a time, and room is made before."""
        entry = self.find(key)
        if entry is not None:
            return entry
        with self._loading:
            if key not in self:
                self._shrink(self._most - 1)
            return self.get(key, load)

    def clear(self) -> None:
        """Forget everything."""
        self._shrink(0)

    def _shrink(self, most: int) -> None:
        with self._lock:
            if self._weight <= max(most, 0):
                return
            while self._entries and self._weight > most:
                self._weight -= self._weigh(self._entries.popitem(last=False)[1])  # and nobody holds it any more
        self._forgotten()
