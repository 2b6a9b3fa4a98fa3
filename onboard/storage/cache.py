"""A thread-safe LRU cache for anything that has a key and never changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Loaded = TypeVar("Loaded")


class Cache(Generic[Key, Loaded]):
    """Keep the most recently used entries by key. Thread-safe.

    Args:
        most: maximum total weight; with the default weight of 1, the maximum number of entries.
        forgotten: called after entries were evicted, to release their memory.
        weigh: returns the weight of an entry, such as its bytes. An entry heavier than `most` stays until the next one.
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
        """Total weight of the cached entries."""
        return self._weight

    def find(self, key: Key) -> Loaded | None:
        """Return the entry of a key, or None if it is not cached."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def keep(self, key: Key, entry: Loaded) -> None:
        """Add an entry and evict the least recently used ones."""
        with self._lock:
            if key in self._entries:
                self._weight -= self._weigh(self._entries.pop(key))
            weight = self._weigh(entry)
            self._shrink(self._most - weight)
            self._entries[key] = entry
            self._weight += weight

    def get(self, key: Key, load: Callable[[], Loaded]) -> Loaded:
        """Return the entry of a key, loaded if necessary. Two threads may load the same entry at once."""
        entry = self.find(key)
        if entry is None:
            entry = load()
            self.keep(key, entry)
        return entry

    def get_alone(self, key: Key, load: Callable[[], Loaded]) -> Loaded:
        """Like `get`, for large entries: loads one at a time and evicts before loading."""
        entry = self.find(key)
        if entry is not None:
            return entry
        with self._loading:
            if key not in self:
                self._shrink(self._most - 1)
            return self.get(key, load)

    def clear(self) -> None:
        """Remove all entries."""
        self._shrink(0)

    def _shrink(self, most: int) -> None:
        with self._lock:
            if self._weight <= max(most, 0):
                return
            while self._entries and self._weight > most:
                # in this order, nothing refers to the entry when `forgotten` is called
                self._weight -= self._weigh(self._entries.popitem(last=False)[1])
        self._forgotten()
