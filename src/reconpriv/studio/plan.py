"""What the user has chosen, as one frozen object, and the same as a script and as a command."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import reconpriv as rp
from reconpriv.commands import OUT, Part, listed, policy_parts, publish_command

KEY_FILE = "reconpriv.key"


@dataclass(frozen=True)
class Roles:
    """The role of every column; ``widths`` bins numeric ones."""

    sensitive: str
    public: tuple[str, ...]
    missing: str = "refuse"
    widths: dict[str, float] = field(default_factory=dict)

    @property
    def sql(self) -> str | None:
        """The SELECT that bins, or None where nothing is binned."""
        if not self.widths:
            return None
        bins = ", ".join(
            f"{bin_expression(name, w)} AS {_quote(name)}" for name, w in self.widths.items()
        )
        return f"SELECT * REPLACE ({bins}) FROM input"


@dataclass(frozen=True)
class Plan:
    """Everything that a release depends on but the key."""

    source: str
    roles: Roles
    policy: rp.Policy
    test_key: bool = False
    uploaded: bool = False
    keep_identifier: tuple[str, ...] = ()


def bin_expression(name: str, width: float) -> str:
    """A number rounded down to a multiple of the width, whole where the width is."""
    text = f"{width:.12g}"
    floor = f"floor({_quote(name)} / {text}) * {text}"
    if width == int(width):
        return f"({floor})::BIGINT"
    digits = max(0, math.ceil(-math.log10(width))) + 2
    return f"round({floor}, {digits})"


def read_table(source: str, roles: Roles) -> rp.Table:
    """The table with its roles."""
    return rp.read(
        source,
        sensitive=roles.sensitive,
        public=list(roles.public),
        missing=roles.missing,
        sql=roles.sql,
    )


def python_script(plan: Plan) -> str:
    """A program that makes the same release, byte for byte, with the same key."""
    roles, policy = plan.roles, plan.policy.as_dict()
    hint = "  # the table that was uploaded: where is your copy?" if plan.uploaded else ""
    key = "rp.Key.test()" if plan.test_key else "rp.Key.from_file(KEY)"
    kept = f", keep_identifier={list(plan.keep_identifier)!r}" if plan.keep_identifier else ""
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
        ")",
        "table = rp.read(",
        "    TABLE,",
        f"    sensitive={roles.sensitive!r},",
        f"    public={list(roles.public)!r},",
        f"    missing={roles.missing!r},",
        *([f"    sql={roles.sql!r},"] if roles.sql else []),
        ")",
        "with table:",
        "    print(table.audit(policy))",
        f"    print(table.publish(policy, OUT, key={key}{kept}))",
    ]
    return "\n".join(lines) + "\n"


def shell_command(plan: Plan) -> str:
    """The command that makes the same release."""
    roles = plan.roles
    parts: list[Part] = [("-s", roles.sensitive), ("--public", listed(roles.public))]
    if roles.missing != "refuse":
        parts.append(("--missing", roles.missing))
    if roles.sql:
        parts.append(("--sql", roles.sql))
    if plan.keep_identifier:
        parts.append(("--keep-identifier", listed(plan.keep_identifier)))
    parts += policy_parts(plan.policy)
    parts.append(("--test-key", None) if plan.test_key else ("--key", KEY_FILE))
    return publish_command(plan.source, parts)


def _quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
