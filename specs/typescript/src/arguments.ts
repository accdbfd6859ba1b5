/** Whether arguments are valid against a tool's input schema (TC-C-14, TC-S-14). Another engine can stand here. */
import { runInNewContext } from 'node:vm';
import type { Options } from 'ajv';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { member, type Json } from './directive.ts';

const OPTIONS: Options = {
  strict: false, // keywords that are not known mean nothing
  validateFormats: false, // `format` annotates
  ownProperties: true, // `constructor` is no argument unless it was sent
  inlineRefs: false,
  logger: false,
};
const DEFAULT_DIALECT = 'https://json-schema.org/draft/2020-12/schema';
const DIALECTS: Record<string, () => Ajv> = {
  [DEFAULT_DIALECT]: () => new Ajv2020(OPTIONS),
  'https://json-schema.org/draft/2019-09/schema': () => new Ajv2019(OPTIONS),
  // Before 2019-09, what stands beside a `$ref` is ignored.
  'http://json-schema.org/draft-07/schema': () => new Ajv({ ...OPTIONS, ignoreKeywordsWithRef: true }),
};

/**
 * Returns why the arguments are not valid, or undefined. What cannot be validated is not valid.
 *
 * A pattern or a nest of references can keep a validator busy for ever. So it is stopped after some
 * milliseconds, and until then nothing else runs in this process.
 */
export function invalid(schema: object, args: Json, milliseconds = 1_000): string | undefined {
  const dialect = member(schema, '$schema') ?? DEFAULT_DIALECT;
  const ajv = typeof dialect === 'string' && DIALECTS[dialect.replace(/#$/, '')]?.();
  if (!ajv) return 'the dialect of the schema is not known';
  ajv.removeKeyword('id'); // a keyword of draft-04, which later dialects ignore
  ajv.validateSchema({}); // compiles the schema of schemas, which takes longer than most checks, before time counts
  try {
    return runInNewContext('check()', { check: () => unbounded(ajv, schema, args) }, { timeout: milliseconds });
  } catch (error) {
    return `they cannot be validated: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function unbounded(ajv: Ajv, schema: object, args: Json): string | undefined {
  // Ajv passes over a property of this name, and resolves dynamic references only to some anchors.
  const keyword = ['__proto__', '$dynamicRef'].find((name) => JSON.stringify(schema).includes(`"${name}":`));
  if (keyword !== undefined) return `the schema names ${keyword}`;
  // Nothing is fetched: a reference that leads out of the schema cannot be resolved, and throws.
  const check = ajv.compile(schema);
  if (check.schemaEnv.$async) return 'the schema is asynchronous'; // a promise would pass for true
  return check(args) ? undefined : ajv.errorsText(check.errors, { dataVar: 'arguments' });
}
