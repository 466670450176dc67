export default function CompareView(_props: { traceId?: string }) { return null; }
