"""JSON that anyone may have written: parsed, or refused in words."""

from __future__ import annotations

import json
from typing import Any


def parsed_json(text: str) -> Any:
    """Parsed JSON; a ValueError says in brackets what is wrong with it.

    Python's own parser gives up on deep nesting and on huge integers with other errors, and lets
    half a surrogate pair through, which no file can hold.
    """
    try:
        found = json.loads(text)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f" (line {error.lineno})") from None
    except UnicodeEncodeError:
        raise ValueError(" (half a surrogate pair)") from None
    except RecursionError:
        raise ValueError(" (nested too deeply)") from None
    except ValueError:
        raise ValueError(" (an integer of thousands of digits)") from None
    return found
