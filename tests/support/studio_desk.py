"""A studio's desk without its page."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import reconpriv as rp
from reconpriv.studio.desk import Desk, Opened, Published
from reconpriv.studio.plan import Plan, Roles
from reconpriv.studio.step_publish import chosen_key

POLICY = rp.Policy(0.5, 0.5, 0.3)
OTHER = rp.Policy(0.6, 0.5, 0.3)
ROLES = Roles("job", ("age",))


def write(file: Path, *, rows: int = 40) -> Path:
    file.write_text("age,job\n" + "30,cook\n31,baker\n30,baker\n31,cook\n" * (rows // 2))
    return file


def form(kind: str, text: str = "", path: str = "", files: Any = None) -> Any:
    return SimpleNamespace(
        key_kind=lambda: kind,
        key_text=lambda: text,
        key_path=lambda: path,
        key_file=lambda: files,
    )


def publish(
    desk: Desk,
    opened: Opened,
    kind: str,
    policy: rp.Policy = POLICY,
    *,
    given: Any = None,
    unused: rp.Key | None = None,
    roles: Roles = ROLES,
    **words: bool,
) -> Published:
    """As the page does it."""
    settled = desk.settle(opened, roles)
    key = chosen_key(given or form(kind), desk, opened, unused=unused)
    plan = Plan(opened.source, settled.roles, policy, key.is_test, opened.uploaded)
    new = kind in ("generate", "another")
    return desk.publish(settled, plan, key, generated=new, **words)
