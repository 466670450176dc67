export default function TracesView(_props: { traceId?: string }) { return null; }
