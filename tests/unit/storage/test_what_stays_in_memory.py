"""The cache by what its entries weigh."""

from __future__ import annotations

from onboard.storage.cache import Cache


def test_as_much_stays_as_may_weigh_and_what_was_not_used_for_longest_leaves() -> None:
    left: list[int] = []
    cache = Cache[str, str](10, lambda: left.append(cache.weight), weigh=len)
    for key, entry in (("a", "aaaa"), ("b", "bbb"), ("c", "ccc")):
        cache.keep(key, entry)
    assert (cache.weight, left) == (10, [])
    assert cache.find("a") == "aaaa"
    cache.keep("d", "dd")
    assert ("a" in cache, "b" in cache, "c" in cache, "d" in cache) == (True, False, True, True)
    assert (cache.weight, left) == (9, [7])
    cache.keep("d", "ddd")  # it replaces itself
    assert (cache.weight, "a" in cache, "c" in cache) == (10, True, True)


def test_what_alone_weighs_more_than_the_bound_stays_until_the_next() -> None:
    cache = Cache[str, str](3, weigh=len)
    cache.keep("a", "aaaa")
    assert ("a" in cache, cache.weight) == (True, 4)
    cache.keep("b", "b")
    assert ("a" in cache, "b" in cache, cache.weight) == (False, True, 1)
    cache.clear()
    assert (cache.weight, "b" in cache) == (0, False)


def test_without_weights_entries_are_counted() -> None:
    cache = Cache[int, int](2)
    assert [cache.get(key, lambda key=key: key) for key in (1, 2, 3)] == [1, 2, 3]
    assert (1 in cache, 2 in cache, 3 in cache, cache.weight) == (False, True, True, 2)
