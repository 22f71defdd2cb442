"""The campaign: thousands of bad inputs, every one judged by the same rules.

Run it with ``make campaign`` or ``python -m campaign --help``; docs/reliability.md explains it. To
add a generator, write a file in ``generators`` and add its object to ``registry``.
"""
