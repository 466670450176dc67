#!/usr/bin/env python3
"""Slow spans of an operation, and the functions that they spent their CPU time in.

    slow_spans.py tax calculate_tax 300ms

Asks Tempo's API for the spans and Pyroscope's for their profiles: TEMPO_URL and PYROSCOPE_URL say where they are.
"""

import os
import sys

import requests

TEMPO = os.environ.get("TEMPO_URL", "http://localhost:3200")
PYROSCOPE = os.environ.get("PYROSCOPE_URL", "http://localhost:4040")


def search(service, name, threshold):
    query = f'{{resource.service.name="{service}" && name="{name}" && duration>{threshold}}}'
    answer = requests.get(f"{TEMPO}/api/search", params={"q": query, "limit": 5}, timeout=30)
    answer.raise_for_status()
    return [trace["traceID"] for trace in answer.json()["traces"]]


def spans_of(trace_id):
    trace = requests.get(f"{TEMPO}/api/traces/{trace_id}", timeout=30).json()
    for batch in trace["batches"]:
        for scope in batch["scopeSpans"]:
            yield from scope["spans"]


def top_functions(service, span):
    parameters = {
        "query": f'{service}.cpu{{span_id="{span["spanId"]}"}}',
        "from": span["startTimeUnixNano"],
        "until": span["endTimeUnixNano"],
        "format": "json",
    }
    answer = requests.get(f"{PYROSCOPE}/api/v1/query", params=parameters, timeout=30)
    answer.raise_for_status()
    return answer.json()["flamebearer"]["names"][:5]


def main():
    service, name, threshold = sys.argv[1:4]
    for trace_id in search(service, name, threshold):
        for span in spans_of(trace_id):
            duration = int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
            if span["name"] != name:
                continue
            print(f"trace {trace_id}: {name} took {duration / 1e6:.0f} ms")
            for function in top_functions(service, span):
                print(f"    {function}")


main()
