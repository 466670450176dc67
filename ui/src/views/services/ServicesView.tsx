export default function ServicesView(_props: { traceId?: string }) { return null; }
