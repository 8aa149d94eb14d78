"""Blocks as parts of a page, and whole pages that load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files

from markupsafe import Markup, escape

from narrows import __version__
from narrows.blocks.model import (
    Block,
    Cell,
    Column,
    Document,
    Either,
    Facts,
    Figure,
    Items,
    Paragraph,
    Preformatted,
    Section,
    Table,
)
from narrows.policy import lock

#: The colour of each scheme, by the label of its row.
Colours = Mapping[str, str]
_NO_COLOURS: Colours = {}


@lru_cache(maxsize=4)
def asset(name: str) -> str:
    """A file of this package for use in pages."""
    return files("narrows.blocks").joinpath("assets", name).read_text(encoding="utf-8")


def page(document: Document, css: str = "", made_from: str = "from the records alone") -> str:
    """The document as one page without scripts; equal documents have equal bytes."""
    title = document.page_title or document.title
    facts = _facts(Facts(document.facts)) if document.facts else ""
    head = Markup(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'styles';"
        " img-src data:; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="generator" content="narrows {}">\n<title>{} – Narrows</title>\n'
        '<link rel="icon" href="data:,">\n<style>\n{}\n</style>\n</head>\n'
    ).format(__version__, title, Markup(asset("page.css") + css))
    main = render((*document.preamble, *document.blocks))
    body = Markup(
        '<body>\n<header>\n<p class="kind">{}</p>\n<h1>{}</h1>\n{}\n</header>\n<main>\n{}</main>\n'
        "<footer><p>Made by narrows {} {}.</p></footer>\n</body>\n</html>\n"
    ).format(document.kind, document.title, facts, main, __version__, made_from)
    return lock(head + body)


def render(blocks: Iterable[Block], colours: Colours = _NO_COLOURS, level: int = 2) -> Markup:
    """The blocks as markup; sections have headings of `level`."""
    return Markup("").join(_render(block, colours, level) + Markup("\n") for block in blocks)


def _render(block: Block, colours: Colours, level: int) -> Markup:
    match block:
        case Table():
            return render_table(block, colours)
        case Paragraph(kind="hint"):
            return Markup("")
        case Paragraph():
            return Markup("<p{}>{}</p>").format(_class(block.kind), block.text)
        case Items():
            items = (
                Markup("<li{}>{}{}</li>").format(_class(item.kind), item.text, _small(item.small))
                for item in block.items
            )
            return Markup("<ul{}>{}</ul>").format(_class(block.style), Markup("").join(items))
        case Facts():
            return _facts(block)
        case Preformatted():
            return Markup('<pre tabindex="0"><code>{}</code></pre>').format(block.text)
        case Figure():
            return _figure(block)
        case Section():
            return _section(block, colours, level)
        case Either():
            return render(block.page, colours, level)


def _section(block: Section, colours: Colours, level: int) -> Markup:
    inner = render(block.blocks, colours, level + 1)
    if block.closed:
        return Markup("<details><summary>{}</summary>\n{}</details>").format(block.title, inner)
    anchor = Markup(' id="{}"').format(block.anchor) if block.anchor else ""
    small = Markup(' <small class="quiet">{}</small>').format(block.small) if block.small else ""
    heading = Markup("<h{}>{}{}</h{}>").format(level, block.title, small, level)
    if level > 2:
        return heading + Markup("\n") + inner
    return Markup("<section{}>{}\n{}</section>").format(anchor, heading, inner)


def _figure(figure: Figure) -> Markup:
    if figure.absent:
        return Markup('<p class="missing">{}</p>').format(figure.absent)
    title = Markup("<b>{}.</b> ").format(figure.title) if figure.title else ""
    caption = Markup("<figcaption>{}{}</figcaption>").format(title, figure.caption)
    return Markup("<figure>{}{}</figure>").format(
        Markup(figure.picture), caption if figure.title or figure.caption else ""
    )


def _facts(block: Facts) -> Markup:
    if block.style != "facts":
        rows = (Markup("<dt>{}</dt><dd>{}</dd>").format(name, value) for name, value in block.rows)
    else:
        rows = (Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(name, value) for name, value in block.rows)
    return Markup('<dl class="{}">{}</dl>').format(block.style, Markup("").join(rows))


def render_table(table: Table, colours: Colours = _NO_COLOURS) -> Markup:
    """A table that scrolls sideways where it is too wide."""
    caption = Markup('<caption class="hidden">{}</caption>\n').format(table.label) if table.label else ""
    heads = Markup("").join(map(render_head, table.columns))
    rows = Markup("\n").join(_row(table, row, colours) for row in table.rows)
    notes = Markup("").join(
        Markup("<li>{}{}</li>").format(
            Markup("<sup>{}</sup> ").format(note.mark) if note.mark else "", note.text
        )
        for note in table.notes
    )
    return Markup(
        '<div class="table" role="region" aria-label="{}" tabindex="0">\n<table{}>\n{}'
        "<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>\n</div>{}"
    ).format(
        table.label,
        _class(table.style),
        caption,
        heads,
        rows,
        Markup('\n<ul class="notes">{}</ul>').format(notes) if notes else "",
    )


def render_head(column: Column) -> Markup:
    """The head of a column with its element."""
    title = column.title or Markup('<span class="hidden">outcome</span>')
    return Markup('<th scope="col"{}>{}{}</th>').format(_class(_side(column)), title, _small(column.unit))


def _row(table: Table, cells: tuple[Cell, ...], colours: Colours) -> Markup:
    columns = table.columns[len(table.columns) - len(cells) :]
    made = (render_cell(cell, column, colours) for cell, column in zip(cells, columns, strict=True))
    group = _class("group" if cells and cells[0].span > 1 else "")
    return Markup("<tr{}>{}</tr>").format(group, Markup("").join(made))


def render_cell(cell: Cell, column: Column, colours: Colours = _NO_COLOURS) -> Markup:
    """One cell of a table with its element."""
    outcome = cell.kind.startswith("outcome-")
    element = Markup('th scope="row"') if column.names else Markup("td")
    span = Markup(' rowspan="{}"').format(cell.span) if cell.span > 1 else ""
    kind = _class(" ".join(word for word in (_side(column), "" if outcome else cell.kind) if word))
    swatch: Markup | str = ""
    if column.names and (colour := colours.get(cell.key or cell.text)):
        swatch = Markup('<span class="swatch" style="background:{}"></span>').format(colour)
    status: Markup | str = ""
    if cell.status_mark:
        status = Markup(' <span class="status status-{0}" title="{0}" aria-label="{0}">{1}</span>').format(
            cell.status, cell.status_mark
        )
    return Markup("<{}{}{}>{}{}{}</{}>").format(
        element, span, kind, swatch, _content(cell, outcome), status, "th" if column.names else "td"
    )


def _content(cell: Cell, outcome: bool) -> Markup:
    if cell.picture:
        text = Markup(cell.picture)
    elif outcome:
        text = Markup('<span class="badge {}">{}</span>').format(cell.kind, cell.text)
    elif cell.links:
        text = Markup(", ").join(_link(link.text, link.to) for link in cell.links)
    else:
        text = _link(cell.text, cell.to)
    if cell.marks:
        marks = (Markup('<span class="note-mark">{}</span>').format(mark) for mark in cell.marks)
        text += Markup("<sup>{}</sup>").format(Markup(",").join(marks))
    return text + _small(cell.small)


def _link(text: str, to: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(to, text) if to else escape(text)


def _small(text: str | None) -> Markup:
    return Markup("<small>{}</small>").format(text) if text else Markup("")


def _side(column: Column) -> str:
    return f"{'right' if column.align == 'right' else ''} {column.style}".strip()


def _class(name: str) -> Markup:
    return Markup(' class="{}"').format(name) if name else Markup("")
