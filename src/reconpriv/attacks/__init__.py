"""The attack lab: the paper's adversaries, and those it overlooks, against your own table.

Each attack is in its own file and returns an :class:`~reconpriv.attacks.result.AttackResult`. Run
one with ``attack(name, table, policy)`` or ``attack_release(name, folder)``.
"""

from __future__ import annotations

from reconpriv.attacks.result import AttackResult
from reconpriv.attacks.run import ATTACKS, Attack, Effort, attack, attack_release

__all__ = ["ATTACKS", "Attack", "AttackResult", "Effort", "attack", "attack_release"]
