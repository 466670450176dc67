package main

import (
	"fmt"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// profiler is what a mode adds to the service: a handler around the routes, and its end.
type profiler struct {
	handler func(http.Handler) http.Handler
	stop    func()
}

func startProfiler(mode string, tracing *sdktrace.TracerProvider) (*profiler, error) {
	switch mode {
	case "pyroscope":
		return startPyroscope(tracing)
	case "pprof":
		return startPprof(tracing), nil
	case "scrape":
		return servePprof(tracing), nil
	default:
		return nil, fmt.Errorf("there is no profiler %q; use pyroscope, pprof or scrape", mode)
	}
}

// traced gives each request a server span of the provider.
func traced(routes http.Handler, provider trace.TracerProvider) http.Handler {
	return otelhttp.NewHandler(routes, "request", otelhttp.WithTracerProvider(provider),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.URL.Path }))
}

// markingChosen traces all requests and marks the chosen ones for withSpanLabels.
func markingChosen(routes http.Handler, provider trace.TracerProvider) http.Handler {
	inner := traced(routes, provider)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isChosen(r) {
			r = r.WithContext(markChosen(r.Context()))
		}
		inner.ServeHTTP(w, r)
	})
}
