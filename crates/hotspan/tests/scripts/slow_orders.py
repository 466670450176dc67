"""Finds slow orders and shows where their time went, as people do with Tempo."""

import base64
import os
import sys

import requests

TEMPO = os.environ.get("TEMPO_URL", "http://localhost:3200")


def slow_traces(query, limit=20):
    answer = requests.get(f"{TEMPO}/api/search", params={"q": query, "limit": limit}, timeout=10)
    answer.raise_for_status()
    return answer.json()["traces"]


def spans_of(trace_id):
    answer = requests.get(f"{TEMPO}/api/traces/{trace_id}", timeout=10)
    answer.raise_for_status()
    for batch in answer.json()["batches"]:
        attributes = {entry["key"]: entry["value"] for entry in batch["resource"]["attributes"]}
        service = attributes["service.name"]["stringValue"]
        for scope in batch["scopeSpans"]:
            for span in scope["spans"]:
                length = int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
                yield service, base64.b64decode(span["spanId"]).hex(), span["name"], length / 1e6


def main():
    query = '{resource.service.name="order-service" && name="process_order" && duration>500ms}'
    for trace in slow_traces(query):
        print(trace["traceID"], trace["rootServiceName"], trace["durationMs"])
        for service, span_id, name, millis in spans_of(trace["traceID"]):
            print(" ", service, span_id, name, round(millis))
    missing = requests.get(f"{TEMPO}/api/traces/{'f' * 32}", timeout=10)
    return 0 if missing.status_code == 404 else 1


if __name__ == "__main__":
    sys.exit(main())
