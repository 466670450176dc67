package com.example.orders;

import io.opentelemetry.api.trace.SpanContext;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import one.profiler.AsyncProfiler;
import one.profiler.Span;

/**
 * async-profiler around single requests: a recording of the time that the request took, uploaded when it ends.
 *
 * <p>A JFR recording holds the whole process and marks the request's thread with a span of async-profiler's own, whose tag is
 * the traceparent: the samples of that thread are the request's, the others belong to nobody. The OTLP output knows no such
 * marks; it is uploaded under the ids of the request, and is right for requests that have the process to themselves.
 *
 * <p>There is one async-profiler in a process, so of two chosen requests at the same time the second is not profiled.
 */
final class RequestProfiler {
    private static final String HOTSPAN = System.getenv().getOrDefault("HOTSPAN_ADDRESS", "http://127.0.0.1:4040");
    private static final String SERVICE = System.getenv().getOrDefault("OTEL_SERVICE_NAME", "order-service");

    private final AsyncProfiler profiler = AsyncProfiler.getInstance();
    private final ReentrantLock recording = new ReentrantLock();
    private final ExecutorService uploads = Executors.newSingleThreadExecutor();
    private final HttpClient client = HttpClient.newHttpClient();
    /** {@code jfr} or {@code otlp}. */
    private final String format;

    RequestProfiler(String format) {
        this.format = format;
    }

    private boolean isJfr() {
        return format.equals("jfr");
    }

    <T> T profile(SpanContext span, Supplier<T> work) throws IOException {
        if (!recording.tryLock()) {
            return work.get();
        }
        try {
            Path file = Files.createTempFile("request-", "." + format);
            long from = System.currentTimeMillis();
            // JFR is written as it goes; OTLP at the end.
            profiler.execute("start,event=itimer,interval=10ms" + (isJfr() ? ",jfr,file=" + file : ""));
            long start = Span.start();
            try {
                return work.get();
            } finally {
                Span.end(start, "00-" + span.getTraceId() + "-" + span.getSpanId() + "-01");
                profiler.execute("stop" + (isJfr() ? "" : ",otlp,file=" + file));
                uploads.execute(() -> upload(file, span, from));
            }
        } finally {
            recording.unlock();
        }
    }

    private void upload(Path file, SpanContext span, long from) {
        String query = "service=" + URLEncoder.encode(SERVICE, StandardCharsets.UTF_8) + "&from=" + from
            + (isJfr() ? "" : "&trace_id=" + span.getTraceId() + "&span_id=" + span.getSpanId());
        try {
            HttpRequest request = HttpRequest.newBuilder(URI.create(HOTSPAN + "/api/v1/profiles?" + query))
                .POST(HttpRequest.BodyPublishers.ofFile(file))
                .build();
            var response = client.send(request, BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                System.err.println("profile not uploaded: " + response.statusCode() + " " + response.body());
            }
            Files.deleteIfExists(file);
        } catch (IOException | InterruptedException error) {
            System.err.println("profile not uploaded: " + error);
        }
    }

    /** Waits for what is on its way. */
    void close() {
        uploads.shutdown();
        try {
            uploads.awaitTermination(10, TimeUnit.SECONDS);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
