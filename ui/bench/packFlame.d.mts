export function packFlame(told: Record<string, unknown>, columns: { self: number[]; name: number[]; children: number[] }): ArrayBuffer;
