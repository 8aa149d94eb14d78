"""Blocks as Markdown, for pull requests and files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from narrows.blocks.model import (
    Block,
    Cell,
    Column,
    Document,
    Either,
    Facts,
    Figure,
    Item,
    Items,
    Paragraph,
    Preformatted,
    Section,
    Table,
)
from narrows.text import markdown_table

#: Characters that a renderer interprets as mark-up, or as a reference to a person (`@name`) or an issue
#: (`#1`).
_MARKS = re.compile(r"[\\|*_`<>\[\]#~&]")
#: Text that renderers turn into links: an address, a host name that begins with www., a mail
#: address, the name of a person or team, and an issue of another repository (`owner/name#1`).
_LINKS = re.compile(
    r"(?i)(?<=[a-z0-9])(?=://)|(?<=www)(?=\.)|@|(?<=mailto)(?=:)|(?<=xmpp)(?=:)|(?<=GH)(?=-\d)"
)
#: Has no width, and is not part of a word or a link.
_NOTHING = "<!-- -->"
#: Cells, items and paragraphs of these kinds are emphasised.
_STRONG = ("total", "lead", "good", "bad", "outcome-worse", "outcome-better", "outcome-different")


def render(document: Document, level: int = 1) -> str:
    """The whole document, whose title is a heading of `level`."""
    return f"{'#' * level} {plain(document.title)}\n\n{render_blocks(_with_facts(document), level + 1)}"


def _with_facts(document: Document) -> Iterable[Block]:
    facts = (Facts(document.facts),) if document.facts else ()
    return (*facts, *document.preamble, *document.blocks)


def render_blocks(blocks: Iterable[Block], level: int = 2) -> str:
    """The blocks below each other; sections have headings of `level`."""
    return "\n".join(text for block in blocks if (text := _render(block, level)))


def plain(text: object) -> str:
    """Text that no renderer interprets as mark-up, a link, or a mention of a person."""
    escaped = _MARKS.sub(lambda match: f"\\{match[0]}", " ".join(str(text).split()))
    return _LINKS.sub(lambda match: f"{match[0]}{_NOTHING}", escaped)


def _render(block: Block, level: int) -> str:
    match block:
        case Table():
            return _table(block)
        case Paragraph(kind="hint"):
            return ""
        case Paragraph(kind="method"):
            return f"<sub>{plain(block.text)}</sub>\n"
        case Paragraph():
            return f"{_emphasise(block.text, block.kind)}\n"
        case Items():
            return "".join(f"- {_item(item)}\n" for item in block.items)
        case Facts():
            return "".join(f"- **{plain(name)}**: {plain(value)}\n" for name, value in block.rows)
        case Preformatted():
            # A fence is longer than any in the text.
            fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", block.text)), 3)
            return f"{fence}{block.language}\n{block.text.rstrip()}\n{fence}\n"
        case Figure():
            return f"![{plain(block.title)}]({block.file})\n" if block.file else ""
        case Section(closed=True):
            inner = render_blocks(block.blocks, level)
            return f"<details><summary>{plain(block.title)}</summary>\n\n{inner}\n</details>\n"
        case Section():
            return f"{'#' * level} {plain(block.title)}\n\n{render_blocks(block.blocks, level + 1)}"
        case Either():
            return render_blocks(block.text, level)


def _table(table: Table) -> str:
    titles = [_title(column) for column in table.columns]
    numbers = [title for title, column in zip(titles, table.columns, strict=True) if column.align == "right"]
    text = markdown_table(titles, (map(_cell, row) for row in table.pad_rows()), numbers)
    for note in table.notes:
        text += f"\n<sub>{plain(f'({note.mark}) {note.text}' if note.mark else note.text)}</sub>\n"
    return text


def _title(column: Column) -> str:
    return plain(f"{column.title}, {column.unit}" if column.unit else column.title)


def _cell(cell: Cell) -> str:
    text = _emphasise(cell.text, cell.kind) if cell.text else ""
    if cell.small:
        enclosed = cell.small.startswith(("[", "(")) or not text
        text += f" {plain(cell.small)}" if enclosed else f" ({plain(cell.small)})"
    if cell.marks:
        text += f" ({', '.join(cell.marks)})"
    return f"{text} {cell.status_mark}" if cell.status_mark else text


def _item(item: Item) -> str:
    text = _emphasise(item.text, item.kind)
    return f"{text} ({plain(item.small)})" if item.small else text


def _emphasise(text: str, kind: str) -> str:
    return f"**{plain(text)}**" if kind in _STRONG else plain(text)
