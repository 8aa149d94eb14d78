"""A small family of experiments, made of files only, for tests of laboratories."""

from __future__ import annotations

from pathlib import Path

SCENARIO = """\
schema: narrows/scenario/1
question: Which buffer?
where: simulate
path:
  forward: [{rate: 4 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]
schemes: [reno]
matrix: {path.forward.0.queue.droptail: [1 bdp, 2 bdp]}
duration: 2 s
runs: 2
"""
TABLE = """\
variant,buffer,what,value
NewReno,1,rate,3.9
NewReno,2,rate,3.9
CUBIC,1,rate,3.9
CUBIC,2,rate,
NewReno,1,delay,20
NewReno,2,delay,40
CUBIC,1,delay,10
CUBIC,2,delay,0
"""
LAB = """\
schema: narrows/lab/1
title: Buffers
question: What does a buffer cost?
source: a hand-made table
published: {file: table.csv, scheme: variant}
schemes: {NewReno: reno, CUBIC: "{scheme: cubic, beta: 0.8}"}
quick: Half as long.
experiments:
  buffers:
    scenario: buffers.yaml
    set: {runs: 1}
    quick: {duration: 1 s}
    cases:
      small: {ours: {droptail: 1.0 bdp}, published: {buffer: 1}}
      large: {ours: {droptail: 2 bdp}, published: {buffer: "2"}}
columns:
  rate:
    metric: throughput_bps
    published: {column: value, where: {what: rate}, factor: 1000000}
    definition: Bits that arrived in a second.
  delay:
    metric: queueing_delay_p95_ns
    published: {column: value, where: {what: delay}, factor: 1000000}
    definition: The 95th percentile.
    quick: false
artefacts: [{column: delay, where: {variant: CUBIC, buffer: 1}, why: A broken clock.}]
certain: [It was a link of 4 Mbit/s.]
assumed: [Nobody else used it.]
tried: [Another seed.]
relations:
  - {says: A larger buffer costs more, column: delay, more: NewReno @ large, less: NewReno @ small}
  - {says: CUBIC costs more, column: delay, case: small, more: CUBIC, less: NewReno, because: Nobody knows.}
expect:
  - {column: rate, statistic: mean_relative_error, at_most: 10 %}
"""


def family(folder: Path, lab: str = LAB, table: str = TABLE, scenario: str = SCENARIO) -> Path:
    """A new folder with the family."""
    folder.mkdir(parents=True)
    for name, text in (("lab.yaml", lab), ("table.csv", table), ("buffers.yaml", scenario)):
        (folder / name).write_text(text)
    (folder / "page.md").write_text("# Buffers\n\nA page.\n")
    return folder
