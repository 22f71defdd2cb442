"""ε and δ are those of differential privacy: nothing that a user reads calls a policy's so."""

import ast
import re
from pathlib import Path

import reconpriv

SOURCE = Path(reconpriv.__file__).parent
# These follow the paper, whose symbols ε and δ are.
OF_THE_PAPER = {"theory", "research"}
OF_MARGINS = Path("policy/margin_settings.py")
GREEK = re.compile("[εδ]")
# Margins and randomised response are differentially private; the policy's own are (ε) in the paper.
ALLOWED = re.compile(r"margin|differential|epsilon|delta|local-DP|ρ|paper", re.IGNORECASE)


def statements(code: str) -> list[str]:
    """The innermost statements of a module that hold a text with ε or δ, as code."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.stmt):
            continue
        inner = {id(one) for part in ast.walk(node) if isinstance(part, ast.stmt)
                 and part is not node for one in ast.walk(part)}  # fmt: skip
        texts = [one for one in ast.walk(node) if isinstance(one, ast.Constant)]
        if any(id(one) not in inner and GREEK.search(str(one.value)) for one in texts):
            found.append(ast.unparse(node))
    return found


def test_greek_letters_are_those_of_differential_privacy() -> None:
    files = [one for one in sorted(SOURCE.rglob("*.py"))
             if one.relative_to(SOURCE).parts[0] not in OF_THE_PAPER
             and one != SOURCE / OF_MARGINS]  # fmt: skip
    said = [f"{file.relative_to(SOURCE)}: {statement}" for file in files
            if GREEK.search(text := file.read_text("utf-8"))
            for statement in statements(text) if not ALLOWED.search(statement)]  # fmt: skip
    assert len(files) > 200 and said == []


def test_a_sentence_about_a_policy_in_greek_letters_would_be_found() -> None:
    code = 'def fail(x):\n    """Do."""\n    if x:\n        raise ValueError("Lower p, ε or δ.")\n'
    assert statements(code) == ["raise ValueError('Lower p, ε or δ.')"]
    assert not ALLOWED.search(statements(code)[0])
