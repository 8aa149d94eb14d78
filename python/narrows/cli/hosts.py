"""`narrows hosts`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from click.exceptions import Exit

from narrows.cli.app import group, subcommand
from narrows.cli.common import REMOTE_FOLDER, SSH, Json, print_done
from narrows.cli.parameters import argument, option

hosts = group("hosts", "narrows hosts check user@host", "Other hosts for runs over real paths.")


@subcommand(hosts, "check", example="narrows hosts check user@host")
def check(
    names: Annotated[
        list[str],
        argument(metavar="HOST...", help="As ssh takes them: user@host, or a name of its configuration."),
    ],
    ports: Annotated[
        str | None,
        option(
            metavar="LIST", help="UDP ports to examine, such as 443,5000-5003. [default: five usual ones]"
        ),
    ] = None,
    address: Annotated[
        str | None,
        option(metavar="ADDRESS", help="The host's address for datagrams, if it is not the one ssh uses."),
    ] = None,
    our_address: Annotated[
        str | None,
        option(
            metavar="ADDRESS",
            help="Our address as that host should use it. [default: where our datagrams come from]",
        ),
    ] = None,
    agent: Annotated[
        Path | None,
        option(metavar="FILE", help="A narrows-agent built for the host's architecture."),
    ] = None,
    prepare: Annotated[
        bool,
        option(
            "--prepare",
            help="Try the changes to settings that runs would make at both ends, and undo them at once.",
        ),
    ] = False,
    remote_folder: Annotated[str | None, REMOTE_FOLDER] = None,
    ssh: Annotated[str, SSH] = "ssh",
    as_json: Json = False,
) -> None:
    """Find out what works between this machine and another, and how to fix the rest.

    The agent is copied into a cache folder of the remote user over your ssh (configuration, jump hosts,
    agents and keys included; host keys are always checked). Nothing else is installed or changed there.

    Exit codes: 0 runs would work, 4 something prevents them.
    """
    import shlex

    from narrows.cli.common import print_json
    from narrows.console import say
    from narrows.errors import EXIT_CANNOT_HERE, UsageError
    from narrows.hosts.check import CheckOptions
    from narrows.hosts.check import check as examine
    from narrows.hosts.deploy import read_remote_folder

    if len(names) > 1 and (address is not None or agent is not None):
        raise UsageError("--address and --agent go with a single host; call the command once for each")
    folder = read_remote_folder(remote_folder)
    options = CheckOptions(
        address=address, our_address=our_address, agent=agent, folder=folder, prepare=prepare
    )
    if ports is not None:
        import dataclasses

        options = dataclasses.replace(options, ports=_ports(ports))
    reports = []
    for name in names:
        report = examine(name, options, shlex.split(ssh), say)
        reports.append(report)
        if not as_json:
            _print(report)
    if as_json:
        entries = [report.document() for report in reports]
        print_json(
            {"format": "narrows/hosts/1", "ok": all(report.ok for report in reports), "hosts": entries}
        )
    if not all(report.ok for report in reports):
        raise Exit(EXIT_CANNOT_HERE)


@subcommand(hosts, "clean", example="narrows hosts clean user@host")
def clean(
    names: Annotated[list[str], argument(metavar="HOST...", help="As ssh takes them.")],
    remote_folder: Annotated[str | None, REMOTE_FOLDER] = None,
    ssh: Annotated[str, SSH] = "ssh",
    as_json: Json = False,
) -> None:
    """Remove the copies of the agent from other hosts.

    Narrows keeps no other files there.
    """
    import shlex

    from narrows.hosts.deploy import clean as remove
    from narrows.hosts.deploy import read_remote_folder
    from narrows.hosts.ssh import Ssh

    place = read_remote_folder(remote_folder)
    for name in names:
        with Ssh(name, shlex.split(ssh)) as connection:
            folder, count = remove(connection, place)
        text = f"{name}: {count} {'copy' if count == 1 else 'copies'} removed with {folder}"
        print_done(text, as_json, "clean", host=name, folder=str(folder), removed=count)


def _ports(text: str) -> tuple[int, ...]:
    """`443,5000-5003` as numbers, in the order given."""
    from narrows.errors import UsageError
    from narrows.scenario.real_path import ports_of

    try:
        return ports_of(text)
    except ValueError as error:
        raise UsageError(f"--ports: {error}") from None


def _print(report: object) -> None:
    from rich.table import Table
    from rich.text import Text

    from narrows.console import stdout_console
    from narrows.hosts.check import NO, NOTE, Report

    assert isinstance(report, Report)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "", "here", report.host):
        table.add_column(Text(heading), overflow="fold")
    styles = {NO: "red", NOTE: "yellow"}
    for row in report.rows:
        state = Text(row.state, style=styles.get(row.state, "green"))
        table.add_row(state, Text(row.name), Text(row.here), Text(row.there))
    console = stdout_console()
    console.print(table)
    for row in report.rows:
        if row.remedy:
            console.print(f"{row.name} -> {row.remedy}", soft_wrap=True)
    if report.ok:
        verdict = "runs between this machine and it would work"
    else:
        verdict = "runs between this machine and it would not work yet"
    console.print(f"{report.host}: {verdict}", soft_wrap=True)
