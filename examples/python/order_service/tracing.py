"""OpenTelemetry. OTEL_EXPORTER_OTLP_ENDPOINT says where spans go, http://localhost:4318 by default."""

import os

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SERVICE_NAME = os.environ.get("OTEL_SERVICE_NAME", "order-service")


def start():
    provider = TracerProvider(resource=Resource.create({"service.name": SERVICE_NAME, "service.version": "1.0.0"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def request_span(name, headers):
    """The server span of a request, child of whoever sent it."""
    parent = propagate.extract({key.lower(): value for key, value in headers.items()})
    tracer = trace.get_tracer("order-service")
    return tracer.start_as_current_span(name, context=parent, kind=trace.SpanKind.SERVER)


def span(name):
    return trace.get_tracer("order-service").start_as_current_span(name)
