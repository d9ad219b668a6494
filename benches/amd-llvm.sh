#!/bin/sh
# Times `unwedge amd` and LLVM 19's `llvm-mc` as whole processes on the same code, CPU time of the middle of five runs:
#     benches/amd-llvm.sh CODE GPU [FEATURES]
# CODE is a file of machine code, FEATURES as `+wavefrontsize64`. Needs GNU time, od; says so if `llvm-mc` is not there.
# Lines are those of unwedge's listing, which both assemble; `llvm-mc` reads code as text, so what it disassembles is
# that text.
set -eu
code=$1 gpu=$2 features=${3:-}
unwedge=${UNWEDGE:-target/release/unwedge}
llvm=$(command -v llvm-mc-19 || true)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

middle() { # what it is, how many of it, its unit; the command
    what=$1 many=$2 unit=$3
    shift 3
    for run in 1 2 3 4 5; do
        /usr/bin/time -f '%U %S %M' -o "$work/time" "$@" >/dev/null 2>"$work/err" || true
        tail -n 1 "$work/time"
    done | awk '{ print $1 + $2, $3 }' | sort -n | awk -v what="$what" -v many="$many" -v unit="$unit" '
        NR == 3 { printf "%-22s %8.2f s %8.2f %s %9d KiB\n", what, $1, many / ($1 > 0 ? $1 : 0.01) / 1e6, unit, $2 }'
}

bytes=$(wc -c <"$code")
"$unwedge" amd disasm --gpu "$gpu" --features "$features" "$code" >"$work/lines.s" 2>"$work/err" || true
lines=$(wc -l <"$work/lines.s")
od -An -v -tx1 -w64 "$code" | sed 's/ / 0x/g' >"$work/hex"
echo "$code: $bytes bytes, $lines lines, $gpu $features"
middle 'unwedge disassembles' "$bytes" MB/s "$unwedge" amd disasm --gpu "$gpu" --features "$features" "$code"
middle 'unwedge assembles' "$lines" 'M lines/s' \
    "$unwedge" amd asm --emit raw --gpu "$gpu" --features "$features" "$work/lines.s" -o "$work/made"
cmp "$work/made" "$code" && echo 'what unwedge assembles is the code'
if [ -z "$llvm" ]; then
    echo 'llvm-mc-19 is not here: nothing to compare with (Debian has it in llvm-19)'
    exit
fi
middle 'llvm-mc disassembles' "$bytes" MB/s \
    "$llvm" -triple=amdgcn -mcpu="$gpu" -mattr="$features" -disassemble "$work/hex" -o /dev/null
middle 'llvm-mc assembles' "$lines" 'M lines/s' \
    "$llvm" -triple=amdgcn -mcpu="$gpu" -mattr="$features" -filetype=obj "$work/lines.s" -o /dev/null
