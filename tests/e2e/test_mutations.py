# SPDX-License-Identifier: Apache-2.0
"""mutations.py can be applied: each row names a text that the code has exactly once."""
from e2e import mutations


def test_each_row_follows_the_code():
    counts = {row[0]: (mutations.ROOT / row[1]).read_text().count(row[2]) for row in mutations.MUTATIONS}
    assert not {name: count for name, count in counts.items() if count != 1}
