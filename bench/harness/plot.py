"""Pictures as our own SVG."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def drawing(title: str, size: tuple[int, int], font_size: int, parts: Iterable[str]) -> str:
    """A picture on white.

    Args:
        title: for those who cannot see it.
        size: width and height in pixels, where nobody scales it.
        font_size: in pixels.
        parts: its elements, the first ones lowest.
    """
    width, height = size
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" '
        f'font-size="{font_size}"><title>{escape(title)}</title><rect width="{width}" height="{height}" fill="#fff"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"
