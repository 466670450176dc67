package com.example.orders;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Scope;

/** Ranking the catalogue. */
final class Catalogue {
    private Catalogue() {}

    static String search(int words) {
        Span span = GlobalOpenTelemetry.getTracer("order-service").spanBuilder("catalogue.rank").startSpan();
        try (Scope current = span.makeCurrent()) {
            String best = "";
            for (int word = 0; word < words; word++) {
                best = rankProducts("word-" + word);
            }
            return best;
        } finally {
            span.end();
        }
    }

    private static String rankProducts(String word) {
        String best = "";
        long highest = -1;
        for (int number = 0; number < 5000; number++) {
            String product = "product-" + number;
            long score = similarity(word + product);
            if (score >= highest) {
                highest = score;
                best = product;
            }
        }
        return best;
    }

    private static long similarity(String text) {
        int hash = 0x811c9dc5;
        for (int at = 0; at < text.length(); at++) {
            hash = (hash ^ text.charAt(at)) * 0x01000193;
        }
        return Integer.toUnsignedLong(hash);
    }
}
