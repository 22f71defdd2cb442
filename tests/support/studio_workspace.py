"""A studio's workspace without its page."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import reconpriv as rp
from reconpriv.policy.presets import preset
from reconpriv.studio.pieces.policy_controls import controls_of
from reconpriv.studio.work.keys import chosen_key
from reconpriv.studio.work.live import Candidate
from reconpriv.studio.work.plan import (
    DeclaredRoles,
    PublicationPlan,
    python_script,
    read_table,
    shell_command,
)
from reconpriv.studio.work.settings import roles_place

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
OTHER = rp.Policy(retention=0.6, tolerance=0.5, doubt=0.3)
ROLES = DeclaredRoles("job", ("age",))
ADULT = DeclaredRoles("occupation", ("age", "race", "sex"), missing="value")


def write(file: Path, *, rows: int = 40) -> Path:
    file.write_text("age,job\n" + "30,cook\n31,baker\n30,baker\n31,cook\n" * (rows // 2))
    return file


class Form(SimpleNamespace):
    """The inputs of a page, by id."""

    def __contains__(self, name):
        return hasattr(self, name)

    def __getitem__(self, name):
        return lambda: getattr(self, name)


def form(kind, text="", path="", files=None):
    given = {"key_kind": kind, "key_text": text, "key_path": path, "key_file": files}
    return SimpleNamespace(**{name: lambda value=value: value for name, value in given.items()})


def load(workspace, source, roles=ROLES):
    """Open a table and give its columns their roles."""
    return workspace.load(workspace.look(str(source)), roles)


def publish(workspace, opened, kind="test", policy=POLICY, *, given=None, unused=None,
            roles=ROLES, **words):  # fmt: skip
    """As the page does it."""
    loaded = workspace.load(opened, roles)
    key = chosen_key(given or form(kind), workspace, opened, {}, unused)
    plan = PublicationPlan(opened.source, roles, policy, key.is_test, opened.uploaded)
    new = kind in ("generate", "another")
    return workspace.publish(loaded, plan, key, generated=new, **words)


def audited(workspace, loaded, policy=POLICY):
    return workspace.audit(loaded, policy, worst=1)


def setting(loaded, policy=POLICY):
    return loaded.tuner.setting(policy.on(loaded.tuner.schema))


def prepared(workspace, source, roles, *, policy="paper", step=3, **draft):
    """A workspace as a user leaves it who has walked up to a step with a table and a preset."""
    loaded = load(workspace, source, roles)
    given = dict.fromkeys(roles.public, "public") | {roles.sensitive: "sensitive"}
    columns = [one.name for one in loaded.opened.summary.columns]
    workspace.draft |= {
        roles_place(loaded.opened): {
            "roles": {name: given.get(name, "drop") for name in columns},
            "bins": dict.fromkeys(columns, "") | roles.bins,
            "missing": roles.missing,
        },
        "preset": policy,
        **controls_of(preset(policy)),
        "max_error": None,
        **draft,
    }
    workspace.step = step
    return Candidate(loaded, preset(policy))


def recipes_make(plan, folder, monkeypatch, cli, files_of, key=None):
    """The files of a release that the script and the command both make, like the library."""
    with read_table(plan.source, plan.roles) as table:
        table.publish(plan.policy, folder / "mine", key=key or rp.Key.test(), **plan.accepted)
    monkeypatch.chdir(folder)
    exec(python_script(plan), {})
    (folder / "release").rename(folder / "first")
    before, _, command = shell_command(plan).rpartition("reconpriv publish ")
    subprocess.run(["/bin/sh", "-c", before or ":"], check=True)
    done = cli("publish", *shlex.split(command.replace("\\\n", " ")))
    assert done.code == 0, done.err
    mine = files_of(folder / "mine")
    assert files_of(folder / "first") == mine == files_of(folder / "release")
    return mine


def lines_of(found):
    """The rows of an answer beside the truth; classes are numbers, their places in the order."""
    lines = []
    for i, (labels, (one,)) in enumerate(found.table.rows):
        value, low, high, truth = found.places(i)
        label = ", ".join(map(str, labels.values()))
        lines.append(
            SimpleNamespace(
                label=label, value=value, low=low, high=high, truth=truth, exact=one.exact,
                inside=found.inside[i], interval=one.interval, unit=one.unit,
                shown_truth=one.shown(found.truths[i]),
            )
        )  # fmt: skip
    return lines
