"""What the user has chosen, and the same as a script and as a command."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pprint import pformat
from typing import Any

import reconpriv as rp
from reconpriv.messages.commands import OUT, Part, assigned, listed, policy_parts, publish_command

KEY_FILE = "reconpriv.key"


@dataclass(frozen=True)
class DeclaredRoles:
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
        """True if one row of each person is kept."""
        return self.rows_per_person != "refuse"

    @property
    def recoded(self) -> str:
        """Which columns are binned or grouped, in words."""
        parts = [f"{name} by {said}" for name, said in self.bins.items()]
        for name, said in self.groups.items():
            parts.append(f"{name} in {len(set(said.values()))} groups")
        return ", ".join(parts)

    @property
    def arguments(self) -> dict[str, Any]:
        """The roles as arguments of :func:`reconpriv.read`, without those at their defaults."""
        optional = {
            "person": self.person,
            "rows_per_person": self.rows_per_person if self.keeps_one else "",
            "missing": "" if self.missing == "refuse" else self.missing,
            "bin": self.bins,
            "group": self.groups,
        }
        said = {name: value for name, value in optional.items() if value}
        return {"sensitive": self.sensitive, "public": list(self.public), **said}


@dataclass(frozen=True)
class PublicationPlan:
    """Everything that a release depends on except the key.

    ``accepted`` is what the steward accepts, as arguments of publish, audit and report.
    """

    source: str
    roles: DeclaredRoles
    policy: rp.Policy
    test_key: bool = False
    uploaded: bool = False
    accepted: Mapping[str, Any] = field(default_factory=dict)


def read_table(source: str, roles: DeclaredRoles) -> rp.Table:
    """The table with its roles."""
    return rp.read(source, **roles.arguments)


def python_script(plan: PublicationPlan) -> str:
    """A program that makes the same release, byte for byte, given the same key."""
    hint = "  # the uploaded table: give the path of your own copy" if plan.uploaded else ""
    key = "rp.Key.test()" if plan.test_key else "rp.Key.from_file(KEY)"
    accepted = "".join(f", {name}={value!r}" for name, value in plan.accepted.items())
    policy = replace(plan.policy, margins=None).as_dict()
    lines = [
        '"""Written by reconpriv studio. With the same key it makes the same release."""',
        "",
        "import reconpriv as rp",
        "",
        f"TABLE = {plan.source!r}{hint}",
        *([] if plan.test_key else [f"KEY = {KEY_FILE!r}  # from the studio, mode 0600"]),
        f"OUT = {OUT!r}",
        "",
        "policy = rp.Policy(",
        *(f"    {name}={value!r}," for name, value in policy.items()),
        *_margins(plan.policy.wanted_margins),
        ")",
        "table = rp.read(",
        "    TABLE,",
        *(f"    {n}={pformat(v, sort_dicts=False)}," for n, v in plan.roles.arguments.items()),
        ")",
        "with table:",
        f"    print(table.audit(policy{accepted}))",
        f"    print(table.publish(policy, OUT, key={key}{accepted}))",
    ]
    return "\n".join(lines) + "\n"


def _margins(margins: rp.Margins) -> list[str]:
    """The argument ``margins``: an ε if that says it all."""
    if not margins.rho:
        return []
    epsilon = margins.round_epsilon
    plain = epsilon is not None and margins.usual_delta and margins.tables is None
    return [f"    margins={epsilon!r}," if plain else f"    margins=rp.{margins!r},"]


def shell_command(plan: PublicationPlan) -> str:
    """The command that makes the same release; groups are written to files first."""
    said, files = plan.roles.arguments, list[str]()

    def file_of(groups: Mapping[str, str]) -> str:
        name = f"groups-{len(files) + 1}.csv"
        files.append(_here_document(name, groups))
        return name

    parts: list[Part] = [("-s", said.pop("sensitive")), ("--public", listed(said.pop("public")))]
    for option, columns in (("bin", said.pop("bin", {})), ("group", said.pop("group", {}))):
        for name, value in columns.items():
            text = value if isinstance(value, str) else file_of(value)
            parts.append((f"--{option}", assigned(name, text)))
    for option, value in {**said, **plan.accepted}.items():
        text = listed(value) if isinstance(value, list) else str(value)
        parts.append((f"--{option.replace('_', '-')}", text))
    parts += policy_parts(plan.policy, file_of)
    parts.append(("--test-key", None) if plan.test_key else ("--key", KEY_FILE))
    return "".join(files) + publish_command(plan.source, parts)


def _here_document(file: str, groups: Mapping[str, str]) -> str:
    """Shell text that writes a file of groups."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([("value", "group"), *groups.items()])
    end = "END"
    while end in stream.getvalue().splitlines():
        end += "_"
    return f"cat > {file} <<'{end}'\n{stream.getvalue()}{end}\n"
