#!/usr/bin/env bash
# Builds the wheel of python/ and runs its tests, and the notebook, in a fresh virtual environment.
#
#     ci/python.sh [FOLDER]
#
# FOLDER gets the wheel. Needs python3 with venv, and maturin (in PATH, or to be installed with pip). Without them it prints that it was
# skipped and exits with status 0. `unwedge` must be built: target/debug/unwedge, or UNWEDGE names it.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    printf 'skipped: the wheel of python/ is not built: %s\n' "$1"
    exit 0
}

unwedge=${UNWEDGE:-target/debug/unwedge}
[ -x "$unwedge" ] || skip "$unwedge is not there"
command -v python3 >/dev/null || skip "there is no python3"
scratch=$(mktemp --directory)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/build" 2>/dev/null || skip "this python3 has no venv"
maturin=$(command -v maturin || true)
if [ -z "$maturin" ]; then
    "$scratch/build/bin/pip" install --quiet 'maturin>=1.7,<2' 2>/dev/null || skip "maturin is not there and cannot be installed"
    maturin=$scratch/build/bin/maturin
fi
wheels=${1:-$scratch/wheels}
# A target directory of its own, which goes away: the library is as large as the program's.
CARGO_TARGET_DIR=${PYTHON_TARGET_DIR:-$scratch/target} "$maturin" build --quiet ${PROFILE:+--profile "$PROFILE"} --locked \
    --manifest-path python/Cargo.toml --out "$wheels"
python3 -m venv "$scratch/run"
"$scratch/run/bin/pip" install --quiet --no-index --find-links "$wheels" unwedge
"$unwedge" demo --save "$scratch/demo.devcore" >/dev/null
# From another folder, so that the installed package is what is imported.
tests=$PWD/python/tests
cd "$scratch"
UNWEDGE_DEMO=$scratch/demo.devcore "$scratch/run/bin/python" -m unittest discover --start-directory "$tests" --verbose
ls -l "$wheels"
