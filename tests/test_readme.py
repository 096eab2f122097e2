"""README's Python blocks run as they stand; its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_python_blocks_run(block: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_there_are_blocks_to_run() -> None:
    assert len(BLOCKS) >= 3
    assert "./tools/demo" in COMMANDS[0] and "./tools/test" in COMMANDS[0]
    assert (ROOT / "tools/demo").stat().st_mode & 0o111 and (ROOT / "tools/test").stat().st_mode & 0o111


def test_the_shell_example_runs(tmp_path: Path) -> None:
    example = next(block for block in COMMANDS if "mphfstore build" in block)
    script = "mphfstore() { " + sys.executable + ' -m mphfstore "$@"; }\nset -e\n' + example
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "NO\nLima\nwords.mph: ok\nEC\nNO\n"), done.stderr
