package com.example.orders;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.trace.Span;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * An order service whose slow requests lead to a line of code.
 *
 * <pre>
 * POST /api/checkout?items=N   adds up an order; the tax on it is the slow part
 * GET  /api/search?words=N     ranks the catalogue; other code, to tell requests apart by
 * </pre>
 *
 * The OpenTelemetry agent makes the spans of requests. Which profiler runs beside it is the first argument: see README.md.
 */
public final class OrderService {
    private OrderService() {}

    public static void main(String[] arguments) throws Exception {
        String mode = arguments.length > 0 ? arguments[0] : "extension";
        RequestProfiler profiler = switch (mode) {
            case "extension", "agent" -> null; // started by the agents on the command line
            case "request" -> new RequestProfiler("jfr");
            case "request-otlp" -> new RequestProfiler("otlp");
            default -> throw new IllegalArgumentException("there is no profiler " + mode
                + "; use extension, agent, request or request-otlp");
        };
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        ExecutorService threads = Executors.newFixedThreadPool(8);
        server.setExecutor(threads);
        server.createContext("/api/checkout", exchange -> serve(exchange, profiler, () -> {
            double total = Checkout.checkout(number(exchange, "items", 20));
            return "{\"total\": " + total + "}";
        }));
        server.createContext("/api/search", exchange -> serve(exchange, profiler, () -> {
            String best = Catalogue.search(number(exchange, "words", 20));
            return "{\"best\": \"" + best + "\"}";
        }));
        server.start();
        System.out.println("order-service listens on http://127.0.0.1:" + server.getAddress().getPort() + ", profiler: " + mode);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            server.stop(1);
            threads.shutdown();
            if (profiler != null) {
                profiler.close();
            }
        }));
    }

    interface Work {
        String answer();
    }

    private static void serve(HttpExchange exchange, RequestProfiler profiler, Work work) throws IOException {
        boolean chosen = profiler != null && HeadSampling.isChosen(exchange.getRequestHeaders());
        int status = 200;
        String body;
        try {
            body = chosen ? profiler.profile(Span.current().getSpanContext(), work::answer) : work.answer();
        } catch (Exception | LinkageError error) {
            status = 500;
            body = "{\"error\": \"" + error + "\"}";
        }
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("content-type", "application/json");
        exchange.sendResponseHeaders(status, bytes.length);
        try (var out = exchange.getResponseBody()) {
            out.write(bytes);
        }
    }

    /** A demonstration needs no more than 100,000 of anything. */
    private static int number(HttpExchange exchange, String name, int otherwise) {
        String query = exchange.getRequestURI().getQuery();
        if (query != null && query.matches(name + "=\\d{1,6}")) {
            int number = Integer.parseInt(query.substring(name.length() + 1));
            return number <= 100_000 ? number : otherwise;
        }
        return otherwise;
    }
}
