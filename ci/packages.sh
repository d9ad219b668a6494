#!/usr/bin/env bash
# Packs every crate as it would be published, and checks that all of them compile from these packages alone.
#
#     ci/packages.sh [FOLDER]
#
# FOLDER gets the packages. Cargo's own verification builds the whole program a second time; the compiler's checks are enough to find a
# file or a dependency that a package lacks, and they share what `cargo clippy` made of other people's crates.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp --directory)
trap 'rm -rf "$scratch"' EXIT
target=${CARGO_TARGET_DIR:-$PWD/target}
cargo package --quiet --workspace --no-verify --locked --allow-dirty --target-dir "$scratch/target"
mkdir "$scratch/unpacked"
for package in "$scratch"/target/package/*.crate; do
    tar --extract --gzip --file "$package" --directory "$scratch/unpacked"
done
cp Cargo.lock "$scratch/unpacked"
{
    printf '[workspace]\nresolver = "3"\nmembers = ["*"]\nexclude = ["Cargo.lock"]\n'
    # Dependencies on each other name versions, which are not in the registry yet.
    printf '\n[patch.crates-io]\n'
    for folder in "$scratch"/unpacked/*/; do
        folder=$(basename "$folder")
        printf '%s = { path = "%s" }\n' "${folder%-[0-9]*}" "$folder"
    done
    # As in the workspace, or every crate is checked again.
    sed -n '/^\[profile\./,$p' Cargo.toml
} >"$scratch/unpacked/Cargo.toml"
# Each by itself: together they would have each other's features.
for folder in "$scratch"/unpacked/*/; do
    cargo check --quiet --offline --manifest-path "$folder/Cargo.toml" --target-dir "$target"
done
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    cp "$scratch"/target/package/*.crate "$1"
fi
