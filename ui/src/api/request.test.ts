import { afterEach, describe, expect, it, vi } from 'vitest';
import { address, ApiError, getJson, postBytes } from './request';

const answer = (status: number, body: string, type = 'application/json') => vi.stubGlobal('fetch', () => Promise.resolve(new Response(body, { status, headers: { 'content-type': type } })));
const failing = async (asked: Promise<unknown>): Promise<ApiError> => {
  const caught: unknown = await asked.then(() => null, (cause: unknown) => cause);
  if (!(caught instanceof ApiError)) throw new Error('expected an ApiError');
  return caught;
};
const never = new AbortController().signal;

describe('asking the server', () => {
  afterEach(() => vi.unstubAllGlobals());

  it('keeps addresses relative and leaves empty parameters out', () => {
    expect(address('/api/search', { q: '{ a = "b&c" }', limit: 0, start: undefined, end: '' })).toBe('./api/search?q=%7B+a+%3D+%22b%26c%22+%7D&limit=0');
  });

  it('tells an endpoint that is not there from a thing that is not there', async () => {
    answer(404, 'not found\n', 'text/plain');
    expect((await failing(getJson('x', never))).kind).toBe('missing');
    answer(404, '{"error":"no such trace"}');
    expect(await failing(getJson('x', never))).toMatchObject({ kind: 'refused', message: 'no such trace', status: 404 });
    answer(200, '<!doctype html>', 'text/html');
    expect((await failing(postBytes('x', {}, never))).kind).toBe('missing');
    answer(501, '');
    expect((await failing(getJson('x', never))).kind).toBe('missing');
  });

  it('finds the character at fault, however the server says it', async () => {
    answer(400, '{"message":"unexpected =","position":7,"suggestion":"="}');
    expect(await failing(getJson('x', never))).toMatchObject({ kind: 'refused', position: 7, suggestion: '=' });
    answer(400, 'parse error at line 1, col 8: syntax error', 'text/plain');
    expect((await failing(getJson('x', never))).position).toBe(7);
    answer(400, '1:12: unexpected `>>`\n  { duration >> 5 }\n             ^^\n  expected an operator or `}`', 'text/plain');
    expect(await failing(getJson('x', never))).toMatchObject({ position: 11, message: 'unexpected `>>`; expected an operator or `}`' });
    answer(500, '{"error":{"message":"disk"}}');
    expect(await failing(getJson('x', never))).toMatchObject({ kind: 'server', message: 'disk', position: null });
  });

  it('says when nothing answers', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('failed')));
    expect((await failing(getJson('x', never))).kind).toBe('unreachable');
  });
});
