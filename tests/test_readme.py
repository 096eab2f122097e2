"""README's Python blocks run as they stand; its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mphfstore._cli import commands

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


def run(example: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = "mphfstore() { " + sys.executable + ' -m mphfstore "$@"; }\nset -e\n' + example
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)


EXAMPLES = [block for block in COMMANDS if "mphfstore build" in block]


def test_the_shell_example_runs(tmp_path: Path) -> None:
    done = run(EXAMPLES[0], tmp_path)
    assert (done.returncode, done.stdout) == (0, "NO\nLima\nwords.mph: ok\nEC\nNO\n4:Oslo\n13:Lima\n"), done.stderr


def test_the_example_of_formats_runs(tmp_path: Path) -> None:
    done = run(EXAMPLES[1], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(["! Oslo", "< Lima", "> Perth", "Lima,PE", "Oslo,SE", "Perth,AU"])


def test_every_command_is_listed_as_its_help_has_it() -> None:
    listed = TEXT[TEXT.index("| command | |") :].split("\n\n")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", listed, re.M)) == commands()


def test_every_long_option_that_is_shown_exists() -> None:
    known = {"--json", "--user"}
    for command in commands():
        done = subprocess.run([sys.executable, "-m", "mphfstore", command, "--help"], capture_output=True, text=True)
        known |= set(re.findall(r"--[\w-]+", done.stdout))
    shown = {option for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", TEXT)}
    assert shown <= known, shown - known
