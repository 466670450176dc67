#!/bin/sh
# Instructions per span enter and exit, by cachegrind: each mode is run with N and 2N rounds, and subtracted.
set -eu
binary=${1:-${CARGO_TARGET_DIR:-target}/release/examples/span_cost}
rounds=${2:-100000}
count() {
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$binary" "$1" "$2" 2>&1 |
        sed -n 's/.*I *refs: *//p' | tr -d ,
}
for mode in empty ctx alloc alloc-profiled otel otel-observed tracing tracing-empty-layer tracing-layer; do
    once=$(count "$mode" "$rounds")
    twice=$(count "$mode" $((2 * rounds)))
    awk -v mode="$mode" -v a="$once" -v b="$twice" -v n="$rounds" 'BEGIN { printf "%-16s %.1f instructions\n", mode, (b - a) / n }'
done
