"""The blocks of a document: its text and their roles, without any layout.

All text is plain: no renderer interprets anything in it as markup. Blocks are immutable, and equal
blocks render to equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from narrows.documents.data import Number, Part


class Link(Part, frozen=True):
    """A word of a cell that links to an address, unless `to` is empty."""

    text: str
    to: str


class Note(Part, frozen=True):
    """A note below a table; its mark refers to cells."""

    mark: str
    text: str


class Column(Part, frozen=True):
    """One column of a table: its head (narrow layouts break it at newlines), and its role."""

    head: str
    align: Literal["left", "right"] = "right"
    #: Narrow layouts never omit columns of rank 0; of the others the highest rank goes first, and among equal
    #: ranks the last column.
    rank: int = 0
    #: A column of sentences, wrapped between words; only the last column can be one.
    folded: bool = False
    #: The unit of its numbers.
    unit: str = ""
    #: Its cells name their rows.
    names: bool = False
    #: The style of the column on pages, such as `whole` (never wrapped).
    style: str = ""
    #: The heads of its columns in plain data; without any, its own head.
    fields: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The head on one line."""
        return " ".join(self.head.split())


class Cell(Part, frozen=True):
    """A cell of a table."""

    text: str
    #: A remark below the text, or beside it.
    small: str | None = None
    #: Marks of notes.
    marks: tuple[str, ...] = ()
    #: The kind of content, which determines its style: `scheme`, `absent`, `quiet`, `total`, `unit`, `good`,
    #: `warn`, `bad`, `whole` (never wrapped), `outcome-ok` ....
    kind: str = ""
    #: The number of rows that it spans; only the first cells of a row can span several.
    span: int = 1
    links: tuple[Link, ...] = ()
    #: The label of the row, which determines its colour on pages.
    key: str = ""
    #: The verification of a scheme: its word and its sign.
    status: str = ""
    status_mark: str = ""
    #: The address that it links to.
    to: str = ""
    #: A drawing in place of the text, as trusted SVG; pages alone show it.
    picture: str = ""
    #: Its plain data, one for each field of its column; without any, its text.
    data: tuple[Number | str | None, ...] = ()


class Table(Part, frozen=True, tag_field="block", tag="table"):
    """A table."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[Note, ...] = ()
    #: Its name for those who can't see it, and its style on pages.
    label: str = ""
    style: str = ""
    #: The campaigns that it rests on, in words.
    sources: tuple[str, ...] = ()

    @classmethod
    def new(
        cls,
        columns: Iterable[Column],
        rows: Iterable[Iterable[str | Cell]],
        notes: Iterable[Note] = (),
        label: str = "",
        style: str = "",
        sources: Iterable[str] = (),
    ) -> Table:
        """A table of cells, or of texts as cells. Raises `ValueError` for a row that is too long, or too
        short without cells that span it."""
        heads = tuple(columns)
        made = tuple(
            tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in cells) for cells in rows
        )
        spanned = 0
        for cells in made:
            if len(cells) + (spanned and len(heads) - len(cells)) != len(heads):
                raise ValueError(f"{len(cells)} cells for {len(heads)} columns")
            spanned = max(spanned, *(cell.span for cell in cells), 1) - 1 if cells else 0
        return cls(heads, made, tuple(notes), label, style, tuple(sources))

    def pad_rows(self) -> list[tuple[Cell, ...]]:
        """The rows with an empty cell where a cell of an earlier row spans them."""
        count = len(self.columns)
        return [(Cell(""),) * (count - len(row)) + row for row in self.rows]


class Paragraph(Part, frozen=True, tag_field="block", tag="paragraph"):
    """A sentence or several."""

    text: str
    #: `lead` for the main finding, `question`, `remark` for an explanation, `missing` for the reason of an
    #: absence, `bad` for a problem, `method` for the small print, `hint` for advice about the command
    #: line, which a terminal alone shows.
    kind: str = ""


class Item(Part, frozen=True):
    """An entry of a list; `kind` as in cells."""

    text: str
    kind: str = ""
    #: A remark below it.
    small: str = ""


class Items(Part, frozen=True, tag_field="block", tag="items"):
    """A list of sentences."""

    items: tuple[Item, ...]
    style: str = ""

    @classmethod
    def new(cls, texts: Iterable[str | Item], style: str = "") -> Items:
        """A list of items, or of texts as items."""
        return cls(tuple(text if isinstance(text, Item) else Item(text) for text in texts), style)


class Facts(Part, frozen=True, tag_field="block", tag="facts"):
    """Names with their values."""

    rows: tuple[tuple[str, str], ...]
    style: str = "facts"

    @classmethod
    def new(cls, rows: Iterable[Sequence[str]], style: str = "facts") -> Facts:
        """Facts from pairs of name and value."""
        return cls(tuple((name, value) for name, value in rows), style)


class Preformatted(Part, frozen=True, tag_field="block", tag="preformatted"):
    """Text whose lines no layout breaks: a command, a file."""

    text: str
    language: str = ""


class Figure(Part, frozen=True, tag_field="block", tag="figure"):
    """A picture, or the reason for its absence."""

    title: str
    caption: str = ""
    #: The picture as trusted markup: SVG, or an image with its data.
    picture: str = ""
    #: The file that shows the picture.
    file: str = ""
    absent: str = ""


class Section(Part, frozen=True, tag_field="block", tag="section"):
    """A titled part of a document."""

    title: str
    blocks: tuple[Block, ...]
    #: The anchor on pages.
    anchor: str = ""
    #: A part that few read: closed until the reader opens it, where that is possible.
    closed: bool = False
    #: A remark beside the title.
    small: str = ""


class Either(Part, frozen=True, tag_field="block", tag="either"):
    """The same content in two forms: one for lines of text, and one for pages."""

    text: tuple[Block, ...]
    page: tuple[Block, ...]


Block = Table | Paragraph | Items | Facts | Preformatted | Figure | Section | Either


class Document(Part, frozen=True):
    """A whole document."""

    title: str
    blocks: tuple[Block, ...]
    #: The kind of document, and the title of its page if it differs from its own.
    kind: str = ""
    page_title: str = ""
    #: Facts below the title.
    facts: tuple[tuple[str, str], ...] = ()
    #: The conditions of the result: terminals show them above the title, others below it.
    preamble: tuple[Block, ...] = ()

    @classmethod
    def new(
        cls,
        title: str,
        blocks: Iterable[Block | None],
        *,
        kind: str = "",
        page_title: str = "",
        facts: Iterable[tuple[str, str]] = (),
        preamble: Iterable[Block | None] = (),
    ) -> Document:
        """A document of the blocks that have content."""
        return cls(title, present(blocks), kind, page_title, tuple(facts), present(preamble))


def present(blocks: Iterable[Block | None]) -> tuple[Block, ...]:
    """The blocks that have content; sections without any are left out."""
    return tuple(block for block in blocks if block is not None and _has_content(block))


def _has_content(block: Block) -> bool:
    match block:
        case Table(rows=rows) | Facts(rows=rows):
            return bool(rows)
        case Items(items=items):
            return bool(items)
        case Paragraph(text=text) | Preformatted(text=text):
            return bool(text)
        case Section(blocks=inner):
            return bool(inner)
        case Either(text=text, page=page):
            return bool(text or page)
    return True


def section(
    title: str, *blocks: Block | None, anchor: str = "", closed: bool = False, small: str = ""
) -> Section | None:
    """A section of the blocks that have content; None if there are none."""
    inner = present(blocks)
    return Section(title, inner, anchor, closed, small) if inner else None


def quiet(cells: Iterable[str | Cell]) -> list[Cell]:
    """The cells of a row that is less important than others."""
    return [
        replace(cell, kind="quiet") if isinstance(cell, Cell) else Cell(cell, kind="quiet") for cell in cells
    ]
