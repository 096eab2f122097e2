# shellcheck shell=bash
# Sourced by tools/demo and tools/test. `prepare EXTRA` makes the virtual environment .venv of this repository, with
# the package and mphfstore[EXTRA] in it, and sets `root` and `python`.
#
# The package is installed editable, so Python files are always those of the working tree. The compiled extension is
# rebuilt, from nothing, whenever anything it depends on has changed: `state` lists that, and .venv/installed keeps
# the list's hash next to the hash of what is installed. A run that finds both unchanged needs no network.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." >/dev/null && pwd -P)
venv=$root/.venv
python=$venv/bin/python
stamp=$venv/installed
unset PYTHONPATH PYTHONHOME # the environment alone decides what is imported

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$@"
    exit 1
}

# Says, one a line, what keeps a Python from making the environment.
lacks() {
    "$@" - 2>/dev/null <<'PYTHON' || echo "does not start"
import sys

if sys.version_info < (3, 10):
    print("is %d.%d, older than 3.10" % sys.version_info[:2])
    sys.exit()

import importlib.util
import os
import sysconfig

for module in "venv", "ensurepip":
    if importlib.util.find_spec(module) is None:
        print("has no module " + module)
        break
if not os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h")):
    print("has no headers (Python.h)")
PYTHON
}

advice="Needed: Python 3.10 or newer with its headers and its venv module, and a C compiler. For example
  Debian, Ubuntu   apt install gcc python3-dev python3-venv
  Fedora           dnf install gcc python3-devel
  macOS            xcode-select --install
PYTHON and CC in the environment choose others than the ones found."

find_python() {
    local candidate lack complaints='' candidates=(python3 python3.13 python3.12 python3.11 python3.10)
    [[ -n ${PYTHON:-} ]] && candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        if command -v -- "$candidate" >/dev/null; then
            lack=$(lacks "$candidate")
            if [[ -z $lack ]]; then
                base=$candidate
                return
            fi
        else
            lack="is not there"
        fi
        complaints+="  $candidate ${lack//$'\n'/, }"$'\n'
    done
    die "No usable Python found:"$'\n'"$complaints$advice"
}

check_compiler() {
    local candidate
    for candidate in ${CC:-cc gcc clang}; do
        command -v -- "$candidate" >/dev/null && return
        [[ -n ${CC:-} ]] && break # the rest of CC are arguments
    done
    die "No C compiler found: ${CC:-neither cc nor gcc nor clang} is there."$'\n'"$advice"
}

# A Python, by where its installation is and which version.
identity() { "$1" -c 'import sys; assert sys.version_info >= (3, 10); print(sys.base_prefix, sys.version)' 2>/dev/null; }

make_venv() {
    local current
    if current=$(identity "$python") && "$python" -c 'import pip' 2>/dev/null; then
        if [[ -z ${PYTHON:-} || $current == "$(identity "$PYTHON")" ]]; then
            return
        fi
    fi
    find_python
    say "Making .venv with $("$base" --version) …"
    "$base" -m venv --clear -- "$venv" || die "Could not make .venv."$'\n'"$advice"
}

# Two hashes: of all an installation depends on; and of the installation as it is.
state() {
    "$python" - "$root" "${CC:-}" "${CFLAGS:-}" "${CPPFLAGS:-}" "${LDFLAGS:-}" <<'PYTHON'
import hashlib
import sys
import sysconfig
from pathlib import Path

root = Path(sys.argv[1])
settings = [*sys.argv[1:], sys.version]


def digest(files, *others):
    h = hashlib.sha256(repr(others).encode())
    for file in sorted(files):
        content = file.read_bytes()
        h.update(f"{file} {len(content)} ".encode() + content)
    return h.hexdigest()


def tree(folder):
    return [p for p in (root / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts]


modules = sorted(str(p) for p in tree("mphfstore"))  # an editable installation lists them: their names matter
native = [*tree("native"), root / "pyproject.toml", root / "tools/environment.sh"]
site = Path(sysconfig.get_path("platlib"))
installed = [*site.glob("mphfstore/*.so"), *site.glob("mphfstore-*.dist-info/RECORD")]
print(digest(native, settings, modules), digest(installed))
PYTHON
}

prepare() {
    local extra=$1 before after have=
    make_venv
    before=$(state)
    [[ -f $stamp ]] && have=$(<"$stamp")
    # What the tests need contains what the demo needs.
    if [[ $have == "$extra $before" || $have == "test $before" ]]; then
        return
    fi
    check_compiler
    local lack
    lack=$(lacks "$python")
    [[ -z $lack ]] || die ".venv's Python ${lack//$'\n'/, }."$'\n'"$advice"

    local build=build/$extra options=()
    [[ $extra == test ]] && options=(--config-settings=cmake.define.MPHFSTORE_WERROR=ON)
    say "Installing mphfstore[$extra] into .venv …"
    rm -rf -- "$stamp" "${root:?}/$build"
    # -qq: errors only. Older pips have no --config-settings.
    if ! "$python" -m pip install -qq --disable-pip-version-check 'pip>=23.1' ||
        ! (cd -- "$root" && "$python" -m pip install -qq --disable-pip-version-check --editable ".[$extra]" \
            "--config-settings=build-dir=$build" ${options[@]+"${options[@]}"}); then
        die "Could not install mphfstore[$extra]: the reason stands above (an installation needs a package index)."
    fi
    after=$(state)
    echo "$extra ${before% *} ${after#* }" >"$stamp" # a file edited meanwhile is not in this installation
}
