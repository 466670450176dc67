package main

import (
	"net/http"
	"runtime"

	otelpyroscope "github.com/grafana/otel-profiling-go"
	"github.com/grafana/pyroscope-go"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// startPyroscope runs the Pyroscope SDK. Its OpenTelemetry wrapper labels samples with the local root span.
func startPyroscope(tracing *sdktrace.TracerProvider) (*profiler, error) {
	runtime.SetMutexProfileFraction(5)
	runtime.SetBlockProfileRate(100_000)
	session, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: serviceName(),
		ServerAddress:   setting("PYROSCOPE_SERVER_ADDRESS", "http://127.0.0.1:4040"),
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU,
			pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace,
			pyroscope.ProfileInuseObjects, pyroscope.ProfileInuseSpace,
			pyroscope.ProfileGoroutines,
			pyroscope.ProfileMutexCount, pyroscope.ProfileMutexDuration,
			pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration,
		},
	})
	if err != nil {
		return nil, err
	}
	linking := otelpyroscope.NewTracerProvider(tracing)
	handler := func(routes http.Handler) http.Handler {
		chosen, others := traced(routes, linking), traced(routes, tracing)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isChosen(r) {
				chosen.ServeHTTP(w, r)
			} else {
				others.ServeHTTP(w, r)
			}
		})
	}
	return &profiler{handler: handler, stop: func() { session.Flush(true); session.Stop() }}, nil
}
