export default function StatusView(_props: { traceId?: string }) { return null; }
