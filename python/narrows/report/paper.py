"""report.pdf: the same content typeset by Typst from a template; data reach the template as JSON, never as
markup.
"""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

import msgspec

from narrows import scratch
from narrows.report.content import Report
from narrows.report.errors import ReportError


def render_pdf(content: Report, work: Path) -> bytes:
    """The PDF as bytes; figures are taken from the folder in which they were just drawn."""
    import matplotlib
    import typst

    with scratch.working_folder("typeset", work) as root:
        for part in ("report.typ", "parts.typ"):
            source = files("narrows.report").joinpath("templates", part).read_text(encoding="utf-8")
            (root / part).write_text(source, encoding="utf-8")
        (root / "data.json").write_bytes(msgspec.json.encode(content))
        for figure in content.pictures():
            target = root / f"{figure}.svg"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(work / f"{figure}.svg", target)
        fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        try:
            made = typst.compile(
                str(root / "report.typ"),
                root=str(root),
                font_paths=[str(fonts)],
                ignore_system_fonts=True,
                format="pdf",
            )
        except (RuntimeError, typst.TypstError) as error:
            raise ReportError(f"report.pdf can't be typeset: {str(error).splitlines()[0]}") from error
    if not isinstance(made, bytes):
        raise ReportError("report.pdf can't be typeset: the typesetter gave no single document")
    return made
