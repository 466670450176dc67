package main

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.26.0"
	"go.opentelemetry.io/otel/trace"
)

func serviceName() string { return setting("OTEL_SERVICE_NAME", "order-service") }

// startTracing sets OpenTelemetry up. OTEL_EXPORTER_OTLP_ENDPOINT says where spans go, http://localhost:4318 by default.
func startTracing(ctx context.Context) (*sdktrace.TracerProvider, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	attributes, err := resource.Merge(resource.Default(),
		resource.NewSchemaless(semconv.ServiceName(serviceName()), semconv.ServiceVersion("1.0.0")))
	if err != nil {
		return nil, err
	}
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(attributes)), nil
}

// startSpan makes a child of the request's span, by the provider that made the request's span.
func startSpan(ctx context.Context, name string) (context.Context, func()) {
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer("order-service")
	ctx, span := tracer.Start(ctx, name)
	return ctx, func() { span.End() }
}
