#!/usr/bin/env bash
# The flame graph of a span as text, and its ten hottest functions.
#
#   flame_of_span.sh SERVICE SPAN_ID
set -euo pipefail
server=${PYROSCOPE_URL:-http://localhost:4040}

curl --silent --show-error --fail --get "$server/api/v1/profile" \
  --data-urlencode "app=$1" \
  --data-urlencode "span_id=$2" \
  --data-urlencode "format=flamegraph"
curl --silent --show-error --fail --get "$server/api/v1/query" \
  --data-urlencode "query=topk(10, $1.cpu{span_id=\"$2\"})"
echo
