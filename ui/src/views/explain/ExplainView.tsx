export default function ExplainView(_props: { traceId?: string }) { return null; }
