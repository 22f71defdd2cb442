"""What the user has chosen, as one frozen object, and the same as a script and a command."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace
from typing import Any

import reconpriv as rp
from reconpriv.messages.commands import OUT, Part, listed, policy_parts, publish_command

KEY_FILE = "reconpriv.key"


@dataclass(frozen=True)
class Roles:
    """The role of every column, with the bins and groups as declared.

    ``bins`` holds what was typed (10; 0, 18, 65; quantiles:5), ``groups`` value: group. ``person``
    is the column that says who a row is about, or empty; it is never published. Of people with
    several rows, ``rows_per_person`` keeps ``one``, or they are refused.
    """

    sensitive: str
    public: tuple[str, ...]
    missing: str = "refuse"
    bins: dict[str, str] = field(default_factory=dict)
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    person: str = ""
    rows_per_person: str = "refuse"

    @property
    def keeps_one(self) -> bool:
        """Whether one row of each person is kept."""
        return self.rows_per_person != "refuse"

    @property
    def recoded(self) -> str:
        """Which columns are binned or grouped, in words."""
        parts = [f"{name} by {said}" for name, said in self.bins.items()]
        for name, said in self.groups.items():
            parts.append(f"{name} in {len(set(said.values()))} groups")
        return ", ".join(parts)


@dataclass(frozen=True)
class Plan:
    """Everything that a release depends on except the key.

    The last three are what the steward accepts; ``max_unique`` is None for the usual limit.
    """

    source: str
    roles: Roles
    policy: rp.Policy
    test_key: bool = False
    uploaded: bool = False
    keep_identifier: tuple[str, ...] = ()
    keep_giveaway: tuple[str, ...] = ()
    max_unique: float | None = None

    @property
    def accepted(self) -> dict[str, Any]:
        """What the steward accepts, as arguments of publish, audit and report."""
        said = {
            "keep_identifier": list(self.keep_identifier),
            "keep_giveaway": list(self.keep_giveaway),
            "max_unique": self.max_unique,
        }
        return {name: value for name, value in said.items() if value not in ([], None)}


def read_table(source: str, roles: Roles) -> rp.Table:
    """The table with its roles."""
    return rp.read(
        source,
        sensitive=roles.sensitive,
        public=list(roles.public),
        person=roles.person or None,
        rows_per_person=roles.rows_per_person,
        missing=roles.missing,
        bin=roles.bins,
        group=roles.groups,
    )


def python_script(plan: Plan) -> str:
    """A program that makes the same release, byte for byte, given the same key."""
    roles, policy = plan.roles, replace(plan.policy, margins=None).as_dict()
    hint = "  # the uploaded table: give the path of your own copy" if plan.uploaded else ""
    key = "rp.Key.test()" if plan.test_key else "rp.Key.from_file(KEY)"
    accepted = "".join(f", {name}={value!r}" for name, value in plan.accepted.items())
    lines = [
        '"""Written by reconpriv studio. With the same key it makes the same release."""',
        "",
        "import reconpriv as rp",
        "",
        f"TABLE = {plan.source!r}{hint}",
        *(
            []
            if plan.test_key
            else [f"KEY = {KEY_FILE!r}  # downloaded from the studio, mode 0600"]
        ),
        f"OUT = {OUT!r}",
        "",
        "policy = rp.Policy(",
        *(f"    {name}={value!r}," for name, value in policy.items()),
        *_python_margins(plan.policy.wanted_margins),
        ")",
        "table = rp.read(",
        "    TABLE,",
        f"    sensitive={roles.sensitive!r},",
        f"    public={list(roles.public)!r},",
        *([f"    person={roles.person!r},"] if roles.person else []),
        *([f"    rows_per_person={roles.rows_per_person!r},"] if roles.keeps_one else []),
        f"    missing={roles.missing!r},",
        *([f"    bin={roles.bins!r},"] if roles.bins else []),
        *_python_groups(roles.groups),
        ")",
        "with table:",
        f"    print(table.audit(policy{accepted}))",
        f"    print(table.publish(policy, OUT, key={key}{accepted}))",
    ]
    return "\n".join(lines) + "\n"


def _python_margins(margins: rp.Margins | None) -> list[str]:
    """The argument ``margins``: an ε if that says it all."""
    if margins is None:
        return []
    epsilon = margins.round_epsilon
    plain = epsilon is not None and margins.usual_delta and margins.tables is None
    return [f"    margins={epsilon!r}," if plain else f"    margins=rp.{margins!r},"]


def _python_groups(groups: dict[str, dict[str, str]]) -> list[str]:
    """The argument ``group``, one line per value."""
    if not groups:
        return []
    lines = ["    group={"]
    for name, said in groups.items():
        lines.append(f"        {name!r}: {{")
        lines += [f"            {value!r}: {group!r}," for value, group in said.items()]
        lines.append("        },")
    return [*lines, "    },"]


def shell_command(plan: Plan) -> str:
    """The command that makes the same release; groups are written to files first."""
    roles = plan.roles
    files = {name: f"groups-{i}.csv" for i, name in enumerate(roles.groups, start=1)}
    before = "".join(_here_document(files[name], said) for name, said in roles.groups.items())
    parts: list[Part] = [("-s", roles.sensitive), ("--public", listed(roles.public))]
    parts += [("--person", roles.person)] if roles.person else []
    parts += [("--rows-per-person", roles.rows_per_person)] if roles.keeps_one else []
    if roles.missing != "refuse":
        parts.append(("--missing", roles.missing))
    parts += [("--bin", _assigned(name, said)) for name, said in roles.bins.items()]
    parts += [("--group", _assigned(name, file)) for name, file in files.items()]
    for name, value in plan.accepted.items():
        parts.append((f"--{name.replace('_', '-')}", _accepted(value)))
    parts += policy_parts(plan.policy)
    parts.append(("--test-key", None) if plan.test_key else ("--key", KEY_FILE))
    return before + publish_command(plan.source, parts)


def _accepted(value: list[str] | float) -> str:
    return listed(value) if isinstance(value, list) else repr(value)


def _here_document(file: str, groups: dict[str, str]) -> str:
    """Shell text that writes a file of groups."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([("value", "group"), *groups.items()])
    end = "END"
    while end in stream.getvalue().splitlines():
        end += "_"
    return f"cat > {file} <<'{end}'\n{stream.getvalue()}{end}\n"


def _assigned(name: str, said: str) -> str:
    """COLUMN=WHAT; the name is quoted if necessary."""
    plain = name == name.strip() and not set(name) & {"=", '"'}
    return f"{name if plain else _quote(name)}={said}"


def _quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
