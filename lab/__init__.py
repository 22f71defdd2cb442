"""The lab: studies of this package that write our documents; nobody who installs it needs them.

``python -m lab.attacks docs/attacks`` writes what docs/attacks.md shows, ``python -m
lab.recommended`` what docs/recommended.md shows, ``python -m lab.margins_figure`` the README's
figure. The paper's own study is ``reconpriv experiment`` (:mod:`reconpriv.research`).
"""
