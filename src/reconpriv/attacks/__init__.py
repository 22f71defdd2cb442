"""The attack lab: the adversaries of the paper, and one it overlooks, against one's own table.

Each attack is a file and gives an :class:`~reconpriv.attacks.result.AttackResult`. Run one with
``attack(name, table, policy)`` or ``attack_release(name, folder)``.
"""

from __future__ import annotations

from reconpriv.attacks.result import AttackResult
from reconpriv.attacks.run import ATTACKS, Attack, Effort, attack, attack_release

__all__ = ["ATTACKS", "Attack", "AttackResult", "Effort", "attack", "attack_release"]
