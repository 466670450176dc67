// OpenTelemetry. OTEL_EXPORTER_OTLP_ENDPOINT says where spans go, http://localhost:4318 by default.
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

export const serviceName = process.env.OTEL_SERVICE_NAME ?? 'order-service';

export function startTracing() {
  const own = resourceFromAttributes({ 'service.name': serviceName, 'service.version': '1.0.0' });
  const provider = new NodeTracerProvider({
    resource: defaultResource().merge(own),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  return provider;
}

const tracer = trace.getTracer('order-service');

// The server span of a request, child of whoever sent it.
export function traceRequest(request, name, handle) {
  const parent = propagation.extract(context.active(), request.headers);
  return context.with(parent, () => inSpan(name, handle, SpanKind.SERVER));
}

export function inSpan(name, work, kind = SpanKind.INTERNAL) {
  return tracer.startActiveSpan(name, { kind }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
      throw error;
    } finally {
      span.end();
    }
  });
}
