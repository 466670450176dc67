import { describe, expect, it } from 'vitest';
import { completions, wantedAt } from './completion';
import { hintAt } from './hint';
import { durationLiteral, narrow } from './narrow';
import { findSlip, isMetricsQuery, tokenize } from './tokens';

describe('tokens', () => {
  it('loses no character and names the kinds', () => {
    for (const text of ['{ resource.service.name = "sh\\"op" && duration > 500ms } | rate()', '{.x="1"}>>{span."a b"=~`.*`}', '{ status = error', '"open']) {
      expect(tokenize(text).map((token) => token.text).join('')).toBe(text);
    }
    const kinds = tokenize('{ resource.service.name = "shop" && duration >= 1.5s } | avg(span:duration)').filter((token) => token.kind !== 'space');
    expect(kinds.map((token) => token.kind)).toEqual(['brace', 'attribute', 'operator', 'string', 'operator', 'attribute', 'operator', 'number', 'brace', 'operator', 'function', 'brace', 'attribute', 'brace']);
  });

  it('points at slips by character', () => {
    expect(findSlip('{ name == "x" }')).toMatchObject({ at: 7 });
    expect(findSlip('{ name = "x }')).toMatchObject({ at: 9 });
    expect(findSlip('{ name = "x"')).toMatchObject({ at: 0 });
    expect(findSlip('{ (name = "x" } )')).toMatchObject({ at: 14 });
    expect(findSlip('{ name = "x" } >> { duration > 1s }')).toBeNull();
    expect(isMetricsQuery('{} | rate() by (name)')).toBe(true);
    expect(isMetricsQuery('{ name = "rate" }')).toBe(false);
  });
});

describe('hints', () => {
  it('tell attributes of a parent from what the parent is', () => {
    expect(hintAt('{ parent.name = "checkout" }', [])).toMatchObject({ at: 2, message: expect.stringContaining('{ name = … } > { … }') });
    expect(hintAt('{ .x = 1 && parent.span.duration > 1s }', [])).toMatchObject({ at: 12 });
    expect(hintAt('{ span.status = error }', [])?.message).toContain('span:status');
  });
  it('say nothing of attributes that are stored, of other words, and of texts', () => {
    expect(hintAt('{ parent.name = "checkout" }', [{ name: 'span', tags: ['name'] }])).toBeNull();
    for (const text of ['{ parent.http.route = "/" }', '{ parent.resource.service.name = "shop" }', '{ name = "parent.name" }', '{ span:name = "x" && parent = nil }']) expect(hintAt(text, [])).toBeNull();
  });
});

describe('completion', () => {
  const tags = [{ name: 'resource', tags: ['service.name'] }, { name: 'span', tags: ['http.method'] }];
  const at = (text: string) => wantedAt(text, text.length);

  it('knows what comes next', () => {
    expect(at('{ ')).toMatchObject({ what: 'attribute', prefix: '' });
    expect(at('{ resource.ser')).toMatchObject({ what: 'attribute', prefix: 'resource.ser', from: 2 });
    expect(at('{ resource.service.name = "sh')).toMatchObject({ what: 'value', attribute: 'resource.service.name', prefix: 'sh' });
    expect(at('{ name = "x" } | ')).toMatchObject({ what: 'function' });
    expect(at('{ name = "x" }')).toMatchObject({ what: 'nothing' });
  });

  it('offers names, constants and values', () => {
    expect(completions(at('{ ser'), tags, [])[0]).toBe('resource.service.name');
    expect(completions(at('{ status = '), tags, [])).toEqual(['error', 'ok', 'unset']);
    expect(completions(at('{ span.http.method = "P'), tags, [{ type: 'string', value: 'POST' }, { type: 'string', value: 'GET' }])).toEqual(['"POST"']);
  });
});

describe('narrowing', () => {
  it('keeps the meaning of what was asked', () => {
    expect(narrow('{ name = "x" }', 'duration > 1s')).toBe('{ name = "x" && duration > 1s }');
    expect(narrow('{ a = 1 || b = 2 }', 'duration > 1s')).toBe('{ (a = 1 || b = 2) && duration > 1s }');
    expect(narrow('{} >> { name = "x" }', 'duration > 1s')).toBe('{} >> { name = "x" } | { duration > 1s }');
    expect(narrow('', 'duration > 1s')).toBe('{ duration > 1s }');
    expect([1.9e9, 214e6, 12e3].map(durationLiteral)).toEqual(['1.9s', '214ms', '12us']);
  });
});
