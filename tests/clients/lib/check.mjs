// What every client must give: the code of the slow span, linked, and nothing of any other request.
import assert from 'node:assert/strict';

import { until } from './hotspan.mjs';

// The slow requests of the example services: their spans, from the request's own to the one that burns the CPU.
export const CHECKOUT = { method: 'POST', path: '/api/checkout?items=', spans: ['POST /api/checkout', 'order.calculate_totals', 'calculate_tax'] };
export const SEARCH = { method: 'GET', path: '/api/search?words=', spans: ['GET /api/search', 'catalogue.rank'] };

// There is too little of what there should be, which may be chance: profilers sample, and just-in-time compilers name what
// they like. What should not be there at all is never chance.
export class TooLittle extends Error {}

function enough(holds, message) {
  if (!holds) throw new TooLittle(message);
}

// Runs a row: chosen requests of different kinds side by side with others that are not chosen.
// Returns what stands in the matrix.
export async function checkClient(row, hotspan, service) {
  const by = row.choosesBy ?? 'request';
  const send = (request, amount, chosen) => service.send(request.method, request.path + amount, { chosen, by });
  const items = await service.calibrate((amount) => send(CHECKOUT, amount, false));
  const words = await service.calibrate((amount) => send(SEARCH, amount, false));
  const checkout = (chosen) => send(CHECKOUT, chosen ? items : Math.ceil(items / 4), chosen);
  const search = (chosen) => send(SEARCH, chosen ? words : Math.ceil(words / 4), chosen);
  const rounds = [];
  for (let round = 0; round < 2; round += 1) {
    const [slow, other, unchosen] = row.oneAtATime
      ? await oneAfterTheOther(row.oneAtATime, checkout, search)
      : await Promise.all([checkout(true), search(true), checkout(false)]);
    rounds.push({ slow, other, unchosen });
  }
  // Some clients send nothing when they are told to stop: their last upload is waited for.
  if (row.uploadsLate) for (const { slow, other } of rounds) await waitForUpload(row, hotspan, [slow, other]);
  const exit = await service.child.stop();
  assert.equal(exit, row.exit ?? 0, `${row.name} ended with ${exit}: ${service.child.said.slice(-20).join('\n')}`);

  const [checkoutCode, searchCode] = row.functions;
  const shares = [];
  for (const { slow, other, unchosen } of rounds) {
    shares.push(await checkRequest(row, hotspan, slow.traceId, CHECKOUT, checkoutCode, searchCode));
    shares.push(await checkRequest(row, hotspan, other.traceId, SEARCH, searchCode, checkoutCode));
    if (row.choosesBy !== 'trace') {
      await until('the spans of the request that is not profiled', async () => (await hotspan.spans(unchosen.traceId)).length > 0);
    }
    const samples = await hotspan.samples({ trace_id: unchosen.traceId }, row.type);
    assert.equal(samples.length, 0, 'a request that was not chosen has samples');
  }
  await checkCohort(row, hotspan, checkoutCode);
  for (const type of row.alsoSends ?? []) {
    const ofAll = await hotspan.stacks({ app: row.service, type });
    assert.ok(sum(ofAll) > 0, `there is no ${type} profile of ${row.service}`);
  }
  return { share: Math.min(...shares) };
}

async function waitForUpload(row, hotspan, requests) {
  for (const { traceId } of requests) {
    await until(`the upload with trace ${traceId}`, async () => {
      for (const { id } of await hotspan.spans(traceId)) {
        if ((await hotspan.stacks({ span_id: id, type: row.type })).length > 0) return true;
      }
      return false;
    }, 60_000);
  }
}

// For a profiler that takes one request at a time: in the company of requests that are not chosen, or alone where it can't
// tell them apart.
async function oneAfterTheOther(how, checkout, search) {
  const beside = (request) => (how === 'alone' ? null : request(false));
  const [slow] = await Promise.all([checkout(true), beside(search)]);
  const [other] = await Promise.all([search(true), beside(checkout)]);
  return [slow, other, await checkout(false)];
}

// The share of the span's flame graph that is the function which burned the time.
async function checkRequest(row, hotspan, traceId, request, own, foreign) {
  const spans = await until(`all spans of ${request.spans[0]}`, async () => {
    const spans = await hotspan.spans(traceId);
    return request.spans.every((name) => spans.some((span) => span.name === name)) && spans;
  });
  const slow = spans.find((span) => span.name === (row.linksTo === 'span' ? request.spans.at(-1) : request.spans[0]));
  assert.equal(slow.service, row.service);

  const stacks = await until(`the flame graph of ${slow.name} in trace ${traceId}`, async () => {
    const stacks = await hotspan.stacks({ span_id: slow.id, type: row.type });
    return stacks.length > 0 && stacks;
  });
  const total = sum(stacks);
  const burned = sum(stacks.filter(({ stack }) => own.test(stack)));
  const text = stacks.map(({ stack, value }) => `${stack} ${value}`).join('\n');
  enough(burned > (row.atLeast ?? 0.5) * total, `${own} has ${burned} of ${total} ns of ${slow.name}:\n${text}`);
  assert.ok(!stacks.some(({ stack }) => foreign.test(stack)), `${slow.name} holds code of another request:\n${text}`);
  // On one thread there is no more CPU time than time, give or take some samples; on a busy machine there is less.
  assert.ok(total < 1.25 * slow.nanoseconds, `${slow.name} took ${slow.nanoseconds} ns, its samples sum to ${total}`);
  enough(total > 0.2 * slow.nanoseconds, `${slow.name} took ${slow.nanoseconds} ns, its samples sum only to ${total}`);

  // A client that names the span alone is asked by it: the trace follows from the span.
  const samples = await hotspan.samples(row.namesTrace === false ? { span_id: slow.id } : { trace_id: traceId }, row.type);
  assert.ok(samples.length > 0, 'the trace has samples');
  for (const sample of samples) {
    if (row.namesTrace !== false) assert.equal(sample.trace_id, traceId);
    assert.equal(sample.span_id, slow.id, `a sample is not linked to ${slow.name}`);
    assert.ok(!sample.stack_trace.some((frame) => foreign.test(frame.function)), 'a sample of another request');
  }
  return burned / total;
}

// From a search for slow spans to their code in one question.
async function checkCohort(row, hotspan, own) {
  const query = `{ resource.service.name = "${row.service}" && name = "POST /api/checkout" && duration > 100ms }`;
  const flame = await hotspan.post('/api/v1/cohort/flame', { query, type: row.type, scope: 'subtree', from: 'now-30m' });
  assert.ok(flame.flamebearer.names.some((name) => own.test(name)), `the cohort's flame graph lacks ${own}`);
}

const sum = (stacks) => stacks.reduce((total, { value }) => total + value, 0);
