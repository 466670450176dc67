#!/bin/sh
# Instructions per span enter and exit, by cachegrind: each mode is run with N and 2N rounds, and subtracted. What a span
# costs with the profiler beyond what it costs without must keep within the budget.
set -eu
binary=${1:-${CARGO_TARGET_DIR:-target}/release/examples/span_cost}
rounds=${2:-100000}
budget=80
count() {
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$binary" "$1" "$2" 2>&1 |
        sed -n 's/.*I *refs: *//p' | tr -d ,
}
for mode in empty ctx alloc alloc-profiled otel otel-observed tracing tracing-empty-layer tracing-layer; do
    once=$(count "$mode" "$rounds")
    twice=$(count "$mode" $((2 * rounds)))
    echo "$mode $once $twice"
done | awk -v n="$rounds" -v budget="$budget" '
    { cost[$1] = ($3 - $2) / n; printf "%-20s %.1f instructions\n", $1, cost[$1] }
    function judge(name, with, without) {
        over = cost[with] - cost[without]
        printf "%-20s %.1f instructions more than without, of %d\n", name, over, budget
        if (over > budget) failed = 1
    }
    END {
        judge("OpenTelemetry", "otel-observed", "otel")
        judge("tracing", "tracing-layer", "tracing")
        exit failed
    }'
