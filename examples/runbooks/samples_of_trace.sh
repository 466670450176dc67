#!/usr/bin/env bash
# The CPU samples of a trace: time, span and innermost function of each, from all services that took part.
#
#   samples_of_trace.sh TRACE_ID
set -euo pipefail
server=${PYROSCOPE_URL:-http://localhost:4040}
now=$(date +%s)

curl --silent --show-error --fail --get "$server/api/v1/profiles" \
  --data-urlencode "trace_id=$1" \
  --data-urlencode "type=cpu" \
  --data-urlencode "start_time=$((now - 3600))" \
  --data-urlencode "end_time=$now" |
  python3 -c '
import json, sys
for sample in json.load(sys.stdin)["samples"]:
    print(sample["timestamp"], sample["service_name"], sample["span_id"], sample["stack_trace"][0]["function"])'
