/** Whether arguments are valid against a tool's input schema, within bounds (TC-C-14 to TC-C-16, TC-C-45). */
import { parentPort, Worker, workerData } from 'node:worker_threads';
import type { Options } from 'ajv';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isObject, type Json } from './directive.ts';

/** The most characters of JSON, schema and arguments together. */
const SIZE = 1_000_000;
const MARK = 'tool-chaining: check these arguments';

const OPTIONS: Options = {
  strict: false, // keywords that are not known mean nothing
  validateFormats: false, // `format` annotates
  ownProperties: true, // `constructor` is no argument unless it was sent
  inlineRefs: false,
  logger: false,
};
// `pattern` is ECMA-262, compiled with the flag `u`, as JSON Schema recommends.
const DIALECTS: Record<string, () => Ajv> = {
  'https://json-schema.org/draft/2020-12/schema': () => new Ajv2020(OPTIONS),
  'https://json-schema.org/draft/2019-09/schema': () => new Ajv2019(OPTIONS),
  // Before 2019-09, what stands beside a `$ref` is ignored.
  'http://json-schema.org/draft-07/schema': () => new Ajv({ ...OPTIONS, ignoreKeywordsWithRef: true }),
};

/** Returns why the arguments are not valid, or undefined. Has no bounds: for schemas of one's own. */
export function invalid(schema: unknown, args: unknown): string | undefined {
  try {
    // Ajv passes over a property of this name, so that it would not be checked, and resolves dynamic references
    // only to some anchors, so that what they say would not be.
    const keyword = ['__proto__', '$dynamicRef'].find((name) => JSON.stringify(schema).includes(`"${name}":`));
    if (keyword !== undefined) return `the schema names ${keyword}`;
    const dialect = isObject(schema) && Object.hasOwn(schema, '$schema') ? schema.$schema : Object.keys(DIALECTS)[0];
    const ajv = typeof dialect === 'string' && DIALECTS[dialect.replace(/#$/, '')]?.();
    if (!ajv) return 'the dialect of the schema is not known';
    ajv.removeKeyword('id'); // a keyword of draft-04, which later dialects ignore
    // Nothing is fetched: a reference that leads out of the schema cannot be resolved, and throws.
    const check = ajv.compile(schema as Json);
    if (check.schemaEnv.$async) return 'the schema is asynchronous'; // a promise would pass for true
    return check(args) ? undefined : ajv.errorsText(check.errors, { dataVar: 'arguments' });
  } catch (error) {
    return `they cannot be validated: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** A thread that has nothing to do is kept for the next check. */
let idle: Worker | undefined;

/**
 * The same within bounds, for the schema of somebody else.
 *
 * A pattern, a list or a nest of references can keep a validator busy for ever, and nothing stops it
 * in its own thread. A linear-time engine such as RE2 would cure the patterns alone, and refuse the
 * look-aheads that ECMA-262 allows. So a thread does the work, with a limited heap and stack, and is
 * killed when its time is up. Its time starts when it does, so that a busy machine does not decide.
 */
export async function invalidWithin(schema: unknown, args: unknown, milliseconds = 2_000): Promise<string | undefined> {
  let text: string;
  try {
    text = JSON.stringify([schema, args]);
  } catch {
    return 'they are nested too deeply to be validated';
  }
  if (text.length > SIZE) return 'they, and their schema, are too large to be validated';
  const options = { workerData: MARK, resourceLimits: { maxOldGenerationSizeMb: 128, stackSizeMb: 4 } };
  const worker = idle ?? new Worker(new URL(import.meta.url), options);
  idle = undefined;
  worker.ref();
  let timer: NodeJS.Timeout | undefined;
  let answered = false;
  try {
    return await new Promise((resolve) => {
      worker.once('error', (error) => resolve(`they cannot be validated: ${error.message}`));
      worker.once('exit', () => resolve('they cannot be validated'));
      worker.on('message', (message: { why?: string } | 'begun') => {
        if (message === 'begun') {
          timer = setTimeout(() => resolve('it took too long to validate them'), milliseconds);
        } else {
          answered = true;
          resolve(message.why);
        }
      });
      worker.postMessage(text);
    });
  } finally {
    clearTimeout(timer);
    for (const event of ['error', 'exit', 'message']) worker.removeAllListeners(event);
    worker.on('error', () => undefined); // whatever becomes of it now, it has done its work
    worker.once('exit', () => (idle = idle === worker ? undefined : idle));
    worker.unref();
    if (answered && !idle) idle = worker;
    else void worker.terminate();
  }
}

if (workerData === MARK) {
  parentPort?.on('message', (text: string) => {
    parentPort?.postMessage('begun');
    const [schema, args] = JSON.parse(text) as [unknown, unknown];
    parentPort?.postMessage({ why: invalid(schema, args) });
  });
}
