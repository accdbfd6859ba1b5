/** What a hostile or unusual schema does to the check of arguments. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { invalid } from '../src/arguments.ts';

const own = (text: string) => JSON.parse(text);
const deep = own(`{"a": ${'['.repeat(5_000)}${']'.repeat(5_000)}}`);
const nested = { $ref: '#/$defs/list', $defs: { list: { additionalProperties: { items: { $ref: '#/$defs/list/additionalProperties' } } } } };
const doubled = Object.fromEntries(
  Array.from({ length: 30 }, (_, i) => [`d${i}`, i < 29 ? { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] } : {}]),
);

for (const [what, schema, args] of [
  ['2020-12 without a name', { properties: { a: { prefixItems: [{ type: 'string' }] } } }, { a: ['x', 1] }],
  ['draft-07', { $schema: 'http://json-schema.org/draft-07/schema#', properties: { a: { type: 'string' } } }, { a: 'x' }],
  ['in draft-07 nothing counts beside $ref', {
    $schema: 'http://json-schema.org/draft-07/schema#',
    properties: { a: { $ref: '#/definitions/s', maxLength: 1 } },
    definitions: { s: { type: 'string' } },
  }, { a: 'xx' }],
  ['format annotates', { properties: { a: { format: 'email' }, b: { format: 'of our own' } } }, { a: 'x', b: 'y' }],
  ['a pattern of ECMA-262', { properties: { a: { pattern: '^(?=\\p{L})(?<x>.)\\k<x>$' } } }, { a: 'éé' }],
  ['an unknown keyword', { id: 'x', sorted: true }, {}],
  ['an absent member that every object inherits', { properties: { constructor: { type: 'string' } } }, {}],
  ['a recursive schema', { properties: { a: { $ref: '#' } } }, { a: { a: {} } }],
] as const) {
  test(`valid: ${what}`, () => assert.equal(invalid(schema, args, 60_000), undefined));
}

for (const [what, schema, args, why] of [
  ['an unknown dialect', { $schema: 'https://example.com/dialect' }, {}, /dialect/],
  ['a dialect that is no text', { $schema: 7 }, {}, /dialect/],
  ['a reference that leads out', { $ref: 'http://127.0.0.1:9/schema' }, {}, /resolve/],
  ['a reference that leads nowhere', { $ref: '#/$defs/none' }, {}, /resolve/],
  ['a pattern that cannot be compiled', { properties: { a: { pattern: '(' } } }, { a: 'x' }, /regular expression/],
  ['a schema that is none', { type: 'text' }, {}, /schema is invalid/],
  ['a required member that every object inherits', { required: ['constructor'] }, {}, /constructor/],
  ['__proto__', own('{"properties": {"__proto__": {"type": "string"}}}'), own('{"__proto__": 5}'), /__proto__/],
  ['a dynamic reference', { properties: { a: { $dynamicRef: '#a' } }, $defs: { a: { $dynamicAnchor: 'a' } } }, {}, /dynamicRef/],
  ['a reference to itself', { $ref: '#' }, {}, /stack/],
  ['too deep', nested, deep, /stack/],
  ['what Ajv would check later, and call valid now', { $async: true, required: ['a'] }, {}, /asynchronous/],
  ['a hostile pattern', { properties: { a: { pattern: '^(a+)+$' } } }, { a: `${'a'.repeat(50)}!` }, /timed out/],
  ['references doubled thirty times', { $ref: '#/$defs/d0', $defs: doubled }, {}, /timed out/],
] as const) {
  // Only what would take for ever is given a short time.
  const bound = why.test('timed out') ? 200 : 60_000;
  test(`not valid: ${what}`, () => assert.match(invalid(schema, args, bound) ?? 'valid', why));
}
