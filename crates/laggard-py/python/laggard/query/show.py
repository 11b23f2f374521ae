"""Answers for people. Names in traces and profiles are hostile text: what terminals obey is escaped."""

from __future__ import annotations

import unicodedata
from html import escape
from typing import Any

#: Columns of a table that goes to no terminal.
WIDTH = 100
HTML_ROWS = 20

_NARROWEST = 8
_RULE = "─"
#: Control characters, those that change the direction of text and the like, halves of pairs, and line ends.
_OBEYED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def table(names: list[str], rows: list[tuple[Any, ...]], more: int = 0, width: int | None = None) -> str:
    """Columns side by side, numbers to the right. Texts lose their middle where all is too wide, and columns
    that find no place are named below."""
    numeric = [any(is_number(row[at]) for row in rows) for at in range(len(names))]
    cells = [[printable(name) for name in names], *[[cell(value) for value in row] for row in rows]]
    widths = [max(columns_of(line[at]) for line in cells) for at in range(len(names))]
    shown = len(names)
    if width is not None:
        widths, shown = _fitted(widths, numeric, width)
    lines = []
    for number, line in enumerate(cells):
        parts = []
        for at in range(shown):
            value = shortened(line[at], widths[at])
            space = " " * (widths[at] - columns_of(value))
            parts.append(space + value if numeric[at] else value + space)
        lines.append("  ".join(parts).rstrip())
        if number == 0:
            lines.append("  ".join(_RULE * widths[at] for at in range(shown)))
    notes = []
    if more:
        notes.append(f"{more:,} more row{'s' if more > 1 else ''}")
    if shown < len(names):
        notes.append(f"not shown: {', '.join(cells[0][shown:])}")
    if notes:
        lines.append(f"({'; '.join(notes)})")
    return "\n".join(lines) + "\n"


def _fitted(widths: list[int], numeric: list[bool], width: int) -> tuple[list[int], int]:
    """Widths that fit, and how many columns do."""
    widths = list(widths)

    def excess(count: int) -> int:
        return sum(widths[:count]) + 2 * (count - 1) - width

    shown = len(widths)
    while shown > 1:
        least = sum(size if right else min(size, _NARROWEST) for size, right in zip(widths[:shown], numeric))
        if least + 2 * (shown - 1) <= width:
            break
        shown -= 1
    while excess(shown) > 0:
        texts = [at for at in range(shown) if not numeric[at] and widths[at] > _NARROWEST]
        if not texts:
            break
        widest = max(texts, key=lambda at: widths[at])
        widths[widest] -= 1
    return widths, shown


def is_number(value: Any) -> bool:
    """Whether a value goes to the right."""
    from decimal import Decimal

    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def cell(value: Any) -> str:
    """One value. Whole numbers are exact; others have six digits, and all digits before the point."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.1f}" if 1e5 <= abs(value) < 1e15 else f"{value:.6g}"
    return printable(str(value))


def printable(text: str) -> str:
    """A text that a terminal shows and does not obey."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _OBEYED else char for char in text
    )


def columns_of(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) != 0 for char in text)


def shortened(text: str, width: int) -> str:
    """A text without its middle, where it is too long."""
    if columns_of(text) <= width:
        return text
    head = (width - 1) // 2
    start, end = text[:head], text[len(text) - (width - 1 - head) :]
    while columns_of(start) + columns_of(end) + 1 > width:
        start, end = (start[:-1], end) if len(start) >= len(end) else (start, end[1:])
    return f"{start}…{end}"


def html(names: list[str], rows: list[tuple[Any, ...]], count: int) -> str:
    """The first rows for a notebook."""

    def field(value: Any) -> str:
        side = "right" if is_number(value) else "left"
        return f'<td style="text-align: {side}">{escape(shortened(cell(value), 80))}</td>'

    head = "".join(f"<th>{escape(printable(name))}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(field, row))}</tr>" for row in rows)
    return (
        f"<table><caption>{count:,} row{'s' if count != 1 else ''}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
