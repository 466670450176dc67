package main

import (
	"bytes"
	"context"
	"log"
	"net/http"
	_ "net/http/pprof" // serves /debug/pprof on the default mux
	"net/url"
	"runtime"
	"runtime/pprof"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// withSpanLabels runs work under the labels that tell a CPU profile which span it is in, if the request is chosen.
func withSpanLabels(ctx context.Context, work func(context.Context)) {
	span := trace.SpanContextFromContext(ctx)
	if !isMarkedChosen(ctx) || !span.IsSampled() {
		work(ctx)
		return
	}
	pprof.Do(ctx, pprof.Labels("trace_id", span.TraceID().String(), "span_id", span.SpanID().String()), work)
}

// servePprof only serves the profiles: Hotspan's [[scrape]], or anybody with curl, comes and takes them.
func servePprof(tracing *sdktrace.TracerProvider) *profiler {
	runtime.SetMutexProfileFraction(5)
	runtime.SetBlockProfileRate(100_000)
	handler := func(routes http.Handler) http.Handler {
		all := http.NewServeMux()
		all.Handle("/debug/pprof/", http.DefaultServeMux)
		all.Handle("/", markingChosen(routes, tracing))
		return all
	}
	return &profiler{handler: handler, stop: func() {}}
}

// startPprof takes one CPU profile after the other and uploads each as it is.
func startPprof(tracing *sdktrace.TracerProvider) *profiler {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			profileOnce(ctx)
		}
	}()
	handler := func(routes http.Handler) http.Handler { return markingChosen(routes, tracing) }
	return &profiler{handler: handler, stop: func() { cancel(); <-ended }}
}

func profileOnce(ctx context.Context) {
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		log.Print("no CPU profile: ", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	pprof.StopCPUProfile()

	target := setting("HOTSPAN_ADDRESS", "http://127.0.0.1:4040") + "/api/v1/profiles?service=" + url.QueryEscape(serviceName())
	response, err := http.Post(target, "application/octet-stream", &profile)
	if err != nil {
		log.Print("profile not uploaded: ", err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		log.Print("profile not uploaded: ", response.Status)
	}
}
