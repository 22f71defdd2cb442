"""Read Arrow files from beginning to end, as a program of its own: ``arrow_check.py FILE …``.

Arrow trusts what a file says about its own lengths and offsets, so a damaged file can crash the
process that reads it. This one may crash; it imports nothing of ours, so it starts quickly.
"""

import sys

import pyarrow as pa
import pyarrow.ipc


def check(path: str) -> None:
    """Raise an Arrow error (or crash) if anything in the file does not fit together."""
    with pa.memory_map(path) as source, pa.ipc.open_file(source) as reader:
        reader.schema.empty_table().validate(full=True)
        for number in range(reader.num_record_batches):
            reader.get_batch(number).validate(full=True)


if __name__ == "__main__":
    for file in sys.argv[1:]:
        check(file)
