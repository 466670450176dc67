export default function TraceView(_props: { traceId?: string }) { return null; }
