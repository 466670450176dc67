"""The Pyroscope SDK: one profiler for the process; the samples of chosen requests carry their span as tags.

`otel`   the span processor of pyroscope-otel sets the tags, for the request's own span
`tags`   the service sets them with tag_wrapper around the code that keeps the CPU busy, for that code's span
"""

import os
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

import pyroscope
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from pyroscope.otel import PyroscopeSpanProcessor

from .tracing import SERVICE_NAME

_chosen = ContextVar("chosen", default=False)
_mode = None


def start(mode, provider):
    global _mode
    if mode not in ("otel", "tags"):
        raise SystemExit(f"there is no profiler {mode!r}; use otel or tags")
    _mode = mode
    pyroscope.configure(
        application_name=SERVICE_NAME,
        server_address=os.environ.get("PYROSCOPE_SERVER_ADDRESS", "http://127.0.0.1:4040"),
    )
    if mode == "otel":
        provider.add_span_processor(ChosenRequests(PyroscopeSpanProcessor()))


def stop():
    pyroscope.shutdown()


@contextmanager
def choose(chosen):
    """Says for the time of a request whether it is profiled."""
    token = _chosen.set(chosen)
    try:
        yield
    finally:
        _chosen.reset(token)


def labels_of_span():
    """Around code that keeps the CPU busy."""
    if _mode != "tags" or not _chosen.get():
        return nullcontext()
    span = trace.get_current_span().get_span_context()
    return pyroscope.tag_wrapper({"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"})


class ChosenRequests(SpanProcessor):
    """Lets a span processor see the spans of chosen requests only."""

    def __init__(self, inner):
        self.inner = inner

    def on_start(self, span, parent_context=None):
        if _chosen.get():
            self.inner.on_start(span, parent_context)

    def on_end(self, span):
        if _chosen.get():
            self.inner.on_end(span)
