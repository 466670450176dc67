// What every client must give: the code of the slow span, linked, and nothing of any other request.
import assert from 'node:assert/strict';

import { until } from './hotspan.mjs';

// The slow requests of the example services: their spans, from the request's own to the one that burns the CPU.
export const CHECKOUT = { method: 'POST', path: '/api/checkout?items=', spans: ['POST /api/checkout', 'order.calculate_totals', 'calculate_tax'] };
export const SEARCH = { method: 'GET', path: '/api/search?words=', spans: ['GET /api/search', 'catalogue.rank'] };

// How much of the CPU time that the whole process takes meanwhile has to be in the samples of the requests that are
// profiled: they do most of the work, beside compilers and collectors.
const SEEN = 0.3;

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
  const sendRound = () => service.cpuOf(() => (row.oneAtATime
    ? oneAfterTheOther(row.oneAtATime, checkout, search)
    : Promise.all([checkout(true), search(true), checkout(false)])));
  for (let round = 0; round < 2; round += 1) {
    const [cpu, [slow, other, unchosen]] = row.scraped ? await withinScrape(hotspan, row, sendRound) : await sendRound();
    rounds.push({ slow, other, unchosen, cpu });
  }
  const isSeen = async (round) => (await seen(row, hotspan, round)) > SEEN * round.cpu;
  // Some clients send nothing when they are told to stop: their last upload is waited for.
  if (row.uploadsLate) {
    for (const round of rounds) await until('the uploads with the samples of all requests', () => isSeen(round), 60_000).catch(() => {});
  }
  const exit = await service.child.stop();
  assert.equal(exit, row.exit ?? 0, `${row.name} ended with ${exit}: ${service.child.said.slice(-20).join('\n')}`);

  const [checkoutCode, searchCode] = row.functions;
  const shares = [];
  for (const round of rounds) {
    const { slow, other, unchosen, cpu } = round;
    await until('the samples', () => isSeen(round)).catch(async () => {
      throw new TooLittle(`the process took ${cpu} ms of CPU time, the samples of its requests sum to ${await seen(row, hotspan, round)}`);
    });
    shares.push(await checkRequest(row, hotspan, slow.traceId, CHECKOUT, checkoutCode, searchCode));
    shares.push(await checkRequest(row, hotspan, other.traceId, SEARCH, searchCode, checkoutCode));
    if (row.choosesBy !== 'trace') {
      await until('the spans of the request that is not profiled', async () => (await hotspan.spans(unchosen.traceId)).length > 0);
    }
    const samples = await hotspan.samples({ trace_id: unchosen.traceId }, row.type);
    assert.equal(samples.length, 0, 'a request that was not chosen has samples');
  }
  await checkCohort(row, hotspan, checkoutCode);
  if (row.inherits) await checkInherited(row, hotspan, checkoutCode);
  for (const type of row.alsoSends ?? []) {
    const ofAll = await hotspan.stacks({ app: row.service, type });
    assert.ok(sum(ofAll) > 0, `there is no ${type} profile of ${row.service}`);
  }
  return { share: Math.min(...shares) };
}

// The milliseconds that the samples of a round's chosen requests sum to by now.
async function seen(row, hotspan, { slow, other }) {
  let total = 0;
  for (const [{ traceId }, request] of [[slow, CHECKOUT], [other, SEARCH]]) {
    const span = (await hotspan.spans(traceId)).find(({ name }) => name === linkedSpan(row, request));
    if (span) total += sum(await hotspan.stacks({ span_id: span.id, type: row.type })) / 1e6;
  }
  return total;
}

// The span that the samples of a request name.
const linkedSpan = (row, request) => (row.linksTo === 'span' ? request.spans.at(-1) : request.spans[0]);

// A profile that is fetched covers a stretch of time, and there is a pause before the next one. What a round shows is known
// only if it lies within one of them: it is begun when a scrape is under way, and sent again if that ended before the round.
async function withinScrape(hotspan, row, sendRound) {
  for (let attempt = 0; attempt < 6; attempt += 1) {
    const { begun } = await nextScrape(hotspan);
    const begins = begun + 1000 * row.scraped.interval;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, begins + 500 - Date.now())));
    const from = Date.now();
    const result = await sendRound();
    const ended = Date.now();
    const scrape = await nextScrape(hotspan);
    if (scrape.begun + 100 < from && ended < scrape.begun + 1000 * row.scraped.profiled) return result;
  }
  throw new TooLittle('no round of requests lay within one scrape');
}

// Waits for a scrape of CPU time to end: when it began, in milliseconds.
async function nextScrape(hotspan) {
  const last = async () => {
    const { targets } = await (await hotspan.get('/api/v1/targets')).json();
    return targets.find(({ profile }) => profile === 'cpu');
  };
  const { scrapes } = await last();
  const scrape = await until('a scrape', async () => {
    const now = await last();
    return now.scrapes > scrapes && now.health === 'up' && now;
  }, 90_000);
  return { begun: Date.parse(scrape.last_scrape) - 1000 * scrape.last_scrape_seconds };
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
  const slow = spans.find((span) => span.name === linkedSpan(row, request));
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
  // On one thread there is no more CPU time than time, give or take some samples.
  assert.ok(total < 1.25 * slow.nanoseconds, `${slow.name} took ${slow.nanoseconds} ns, its samples sum to ${total}`);

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

// Runs a row whose service rolls dice for one request in two, with requests that nobody has flagged. Returns how many were
// profiled, and how many there were.
export async function checkShare(row, hotspan, service) {
  let sent = 0;
  const send = (amount) => {
    sent += 1;
    return service.sendPlainly(CHECKOUT.method, CHECKOUT.path + amount);
  };
  const items = Math.ceil((await service.calibrate(send)) / 4);
  for (let request = 0; request < 12; request += 1) await send(items);
  const query = `{ resource.service.name = "${row.service}" && name = "${linkedSpan(row, CHECKOUT)}" }`;
  const profiled = async () => {
    const { exactness } = await hotspan.post('/api/v1/cohort/flame', { query, type: row.type, links: 'exact', from: 'now-30m' });
    return exactness.spans_with_samples;
  };
  if (row.uploadsLate) await until('an upload', async () => (await profiled()) > 0, 60_000);
  await service.child.stop();
  return [await until('a request that was profiled', profiled), sent];
}

// From a search for slow spans to their code in one question.
async function checkCohort(row, hotspan, own) {
  const query = `{ resource.service.name = "${row.service}" && name = "POST /api/checkout" && duration > 100ms }`;
  const flame = await hotspan.post('/api/v1/cohort/flame', { query, type: row.type, scope: 'subtree', from: 'now-30m' });
  assert.ok(flame.flamebearer.names.some((name) => own.test(name)), `the cohort's flame graph lacks ${own}`);
}

// A client that names the request's span and says when each sample was taken leads to the span below that ran then, and says
// that the link is inherited.
async function checkInherited(row, hotspan, own) {
  const query = `{ resource.service.name = "${row.service}" && name = "${CHECKOUT.spans.at(-1)}" && duration > 100ms }`;
  const ask = (links) => hotspan.post('/api/v1/cohort/flame', { query, type: row.type, links, from: 'now-30m' });
  const { flamebearer, exactness } = await ask('inherited');
  assert.ok(flamebearer.names.some((name) => own.test(name)), `the inner span's flame graph lacks ${own}`);
  assert.equal(exactness.inherited, exactness.samples, 'every sample of the inner span is inherited');
  assert.equal((await ask('exact')).flamebearer.numTicks, 0, 'no sample names the inner span');
}

const sum = (stacks) => stacks.reduce((total, { value }) => total + value, 0);
