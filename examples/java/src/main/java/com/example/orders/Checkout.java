package com.example.orders;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;
import java.util.HashMap;
import java.util.Map;

/** Adding up an order. */
final class Checkout {
    /** What the tax office publishes: a line for each district. */
    private static final String TAX_TABLE = publishTaxTable(400);

    private Checkout() {}

    static double checkout(int items) {
        Span span = tracer().spanBuilder("order.calculate_totals").startSpan();
        try (Scope current = span.makeCurrent()) {
            double total = 0;
            for (int item = 0; item < items; item++) {
                total += 5 + item % 20;
            }
            return total + calculateTax(items);
        } finally {
            span.end();
        }
    }

    private static double calculateTax(int items) {
        Span span = tracer().spanBuilder("calculate_tax").startSpan();
        try (Scope current = span.makeCurrent()) {
            double tax = 0;
            for (int item = 0; item < items; item++) {
                tax += (5 + item % 20) * lookupTaxRate(item % 400);
            }
            return tax;
        } finally {
            span.end();
        }
    }

    /** The problem: it reads the whole table for one number. */
    private static double lookupTaxRate(int district) {
        return parseTaxTable(TAX_TABLE).get("district-" + district).get("books");
    }

    private static Map<String, Map<String, Double>> parseTaxTable(String document) {
        Map<String, Map<String, Double>> table = new HashMap<>();
        for (String line : document.split("\n")) {
            String[] cells = line.split(";");
            Map<String, Double> rates = new HashMap<>();
            for (int cell = 1; cell < cells.length; cell++) {
                String[] rate = cells[cell].split("=");
                rates.put(rate[0], Double.parseDouble(rate[1]));
            }
            table.put(cells[0], rates);
        }
        return table;
    }

    private static String publishTaxTable(int districts) {
        StringBuilder document = new StringBuilder();
        for (int district = 0; district < districts; district++) {
            document.append("district-").append(district).append(";books=0.07;food=0.05;toys=0.19;clothing=0.19\n");
        }
        return document.toString();
    }

    private static Tracer tracer() {
        return GlobalOpenTelemetry.getTracer("order-service");
    }
}
