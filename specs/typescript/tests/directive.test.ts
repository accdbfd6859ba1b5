/** The suite's vectors, and the other objects. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { canonical, CAPABILITIES, declares, EXTENSION, readDirective } from '../src/directive.ts';

interface Vector {
  id: string;
  /** As JSON text where a parser may lose something. */
  text?: string;
  meta?: unknown;
  reading: object;
  /** What a parser has to tell for this reading. */
  parser?: 'duplicates' | 'surrogates';
}

const DATA = new URL('../../conformance/directives.json', import.meta.url);
const { vectors, pairs } = JSON.parse(readFileSync(DATA, 'utf8')) as {
  vectors: Vector[];
  pairs: { description: string; one: object; other: object; same: boolean }[];
};

test('every vector is read as it says', () => {
  assert.ok(vectors.length > 50);
  for (const { id, text, meta, reading, parser } of vectors) {
    if (parser === 'duplicates') continue; // JSON.parse keeps the last of two members of one name
    const { why, ...read } = readDirective(text === undefined ? meta : JSON.parse(text)) as { why?: string };
    assert.equal(canonical(read), canonical(reading), id);
  }
});

test('arguments are the same call, or not, as every pair says', () => {
  assert.ok(pairs.length > 5);
  for (const { description, one, other, same } of pairs) assert.equal(canonical(one) === canonical(other), same, description);
});

test('settings are found where a revision has them, and malformed ones are absent', () => {
  const at = (place: string, settings: unknown) => ({ [place]: { [EXTENSION]: settings } });
  for (const modern of [true, false]) {
    assert.ok(declares(CAPABILITIES, modern));
    assert.ok(declares(at('extensions', {}), modern));
    assert.ok(declares(at('extensions', { version: 2, since: 'later' }), modern));
    assert.equal(declares(at('experimental', {}), modern), !modern);
    for (const wrong of [true, null, [], { version: 0 }, { version: 1.5 }, { version: '1' }, { version: null }])
      assert.ok(!declares(at('extensions', wrong), modern), JSON.stringify(wrong));
  }
  assert.ok(declares({ ...at('extensions', null), ...at('experimental', {}) }, false));
});
