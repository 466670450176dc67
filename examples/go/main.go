// An order service whose slow requests lead to a line of code.
//
// POST /api/checkout?items=N   adds up an order; the tax on it is the slow part
// GET  /api/search?words=N     ranks the catalogue; other code, to tell requests apart by
//
// Requests go through OpenTelemetry as usual. Which profiler runs beside it is the first argument: see README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("order-service: ", err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	tracing, err := startTracing(ctx)
	if err != nil {
		return err
	}
	mode := "pyroscope"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	profiler, err := startProfiler(mode, tracing)
	if err != nil {
		return err
	}

	routes := http.NewServeMux()
	routes.HandleFunc("POST /api/checkout", func(w http.ResponseWriter, r *http.Request) {
		total, err := checkout(r.Context(), count(r, "items", 20))
		answer(w, map[string]any{"total": total}, err)
	})
	routes.HandleFunc("GET /api/search", func(w http.ResponseWriter, r *http.Request) {
		answer(w, map[string]any{"best": search(r.Context(), count(r, "words", 20))}, nil)
	})
	server := &http.Server{Handler: profiler.handler(routes)}

	listener, err := net.Listen("tcp", setting("HOST", "127.0.0.1")+":"+setting("PORT", "8080"))
	if err != nil {
		return err
	}
	log.Printf("order-service listens on http://%s, profiler: %s", listener.Addr(), mode)
	go func() {
		<-ctx.Done()
		server.Shutdown(context.Background())
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	// What is still in memory goes out before the process ends.
	profiler.stop()
	flush, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return tracing.Shutdown(flush)
}

func answer(w http.ResponseWriter, body map[string]any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(body)
}

// count reads a number from the query; a demonstration needs no more than 100,000 of anything.
func count(r *http.Request, name string, otherwise int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 0 || n > 100_000 {
		return otherwise
	}
	return n
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
