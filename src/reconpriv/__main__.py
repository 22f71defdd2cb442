"""``python -m reconpriv``."""

from reconpriv.cli import main

if __name__ == "__main__":
    main()
