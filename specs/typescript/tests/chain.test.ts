/** Both halves together, through the SDK's own client and server; the suite has the rest. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, InMemoryTransport, ProtocolError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { fromJsonSchema, McpServer, Server, type CallToolResult } from '@modelcontextprotocol/server';
import { CallsInDoubt, callWithChaining, CAPABILITIES, merged, version1, type Chain, type ChainOptions } from '../src/client.ts';
import { follows, withNextTool } from '../src/server.ts';

const says = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });
const leadsTo = (tool: string, args = {}): CallToolResult => ({ ...says('Begun.'), _meta: { nextTool: { tool, arguments: args } } });
const texts = ({ content }: CallToolResult) => content.map((item) => (item.type === 'text' ? item.text : item.type));
/** What the merged result says in the client's own voice. */
const told = (chain: Chain) => texts(merged(chain)).at(-1) ?? '';
const yes = () => true;

/** Connects a client to a server with the tools given, whose first one is to be called; `log` has the calls. */
async function chained(
  tools: Record<string, (log: string[]) => CallToolResult | Promise<CallToolResult>>,
  { advertises = true } = {},
) {
  const log: string[] = [];
  const names = Object.keys(tools);
  const server = new Server({ name: 'bank', version: '1' }, { capabilities: { tools: {}, ...(advertises && CAPABILITIES) } });
  server.setRequestHandler('tools/list', () => ({
    tools: names.map((name) => ({ name, inputSchema: { type: 'object' as const } })),
  }));
  server.setRequestHandler('tools/call', async ({ params: { name } }) => {
    log.push(name);
    return (await tools[name]?.(log)) ?? says('There is no such tool.');
  });
  const client = new Client({ name: 'desk', version: '1' }, { capabilities: CAPABILITIES });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await server.connect(there);
  await client.connect(here);
  const begin = (options: ChainOptions = {}) => callWithChaining(client, { name: names[0] ?? '' }, { allow: yes, ...options });
  return { begin, client, log };
}

/** A tool that pays, and whose answer is lost: the chain that called it is over by then. */
function losesItsAnswer() {
  const user = new AbortController();
  return { signal: user.signal, pay: () => new Promise<never>(() => user.abort()) };
}

test('a call whose effect is unknown is not made again by another chain, unless the user agrees to that', async () => {
  const lost = losesItsAnswer();
  let pay: () => CallToolResult | Promise<CallToolResult> = lost.pay;
  const { begin, log } = await chained({ prepare: () => leadsTo('pay', { amount: 5 }), pay: () => pay() });
  const first = await begin({ signal: lost.signal });
  assert.deepEqual([first.outcome, first.followUps[0]?.status], ['cancelled', 'unknown']);
  assert.match(told(first), /Call 2, "pay", was started, and whether it took effect is not known\. Do not repeat it .*\. Calling "prepare" again/);
  pay = () => says('Paid.');
  const again = await begin();
  assert.deepEqual([again.outcome, again.followUps[0]?.status], ['declined', 'not_made']);
  assert.deepEqual(log, ['prepare', 'pay', 'prepare']);
  // It is asked in place of the policy, which says no here.
  assert.equal((await begin({ allow: () => false, allowAgain: yes })).outcome, 'completed');
  assert.deepEqual(log.slice(3), ['prepare', 'pay']);
});

test('other arguments and a new client do not end the doubt, and a result does', async () => {
  const inDoubt = new CallsInDoubt();
  let paid = 0;
  const once = async (options: ChainOptions) => {
    const lost = losesItsAnswer();
    const { begin } = await chained({
      prepare: () => leadsTo('pay', { transfer: `tr_${paid}` }),
      pay: () => (++paid === 1 ? lost.pay() : says('Paid.')),
    });
    return (await begin({ inDoubt, signal: lost.signal, ...options })).outcome;
  };
  assert.deepEqual([await once({}), await once({}), paid], ['cancelled', 'declined', 1]);
  assert.deepEqual([await once({ allowAgain: yes }), await once({}), paid], ['completed', 'completed', 3]);
});

test('a member followUps of the server is not replaced, and a step that failed is not forbidden', async () => {
  const own = { followUps: [{ on: '2026-12-01' }] };
  const busy = { ...says('Busy. Try again.'), isError: true };
  const { begin } = await chained({ ask: () => ({ ...leadsTo('book'), structuredContent: own }), book: () => busy });
  const chain = await begin();
  assert.equal(merged(chain).structuredContent, undefined);
  assert.match(told(chain), /Call 2, "book", was made, and its result is an error\.$/);
});

test('a call that a chain beside this one has started is not made', async () => {
  let over: (value: CallToolResult) => void = () => undefined;
  const answer = new Promise<CallToolResult>((resolve) => (over = resolve));
  const { begin, log } = await chained({
    prepare: () => leadsTo('pay'),
    pay: (log) => (log.filter((name) => name === 'pay').length > 1 ? says('Paid twice.') : answer),
  });
  const chains = [begin(), begin(), begin()].map((chain) => chain.finally(() => over(says('Paid.'))));
  const outcomes = (await Promise.all(chains)).map(({ outcome }) => outcome);
  assert.deepEqual(outcomes.sort(), ['completed', 'declined', 'declined']);
  assert.deepEqual(log.filter((name) => name === 'pay'), ['pay']);
});

test('no chain starts a call while the policy of another one is asked about it', async () => {
  const { begin, log } = await chained({ prepare: () => leadsTo('pay'), pay: () => new Promise(() => user.abort()) });
  const user = new AbortController();
  let asked = 0;
  let both: () => void = () => undefined;
  const bothAsked = new Promise<void>((resolve) => (both = resolve));
  const allow = () => {
    if (++asked === 2) both();
    return bothAsked.then(yes);
  };
  await Promise.all([begin({ allow, signal: user.signal }), begin({ allow, signal: user.signal })]);
  assert.deepEqual(log.filter((name) => name === 'pay'), ['pay']);
});

test('a follow-up that returns data alone is not lost', async () => {
  const { begin } = await chained({ ask: () => leadsTo('count'), count: () => ({ content: [], structuredContent: { count: 3 } }) });
  assert.equal(texts(merged(await begin()))[1], '{"count":3}');
});

test('a call that was refused before the server acted was not made, and may be made later', async () => {
  const forbidden = new SdkHttpError(SdkErrorCode.ClientHttpForbidden, 'Forbidden', { status: 403 });
  for (const error of [forbidden, new ProtocolError(-32020, 'Header mismatch')]) {
    const { begin, client } = await chained({ prepare: () => leadsTo('pay'), pay: () => says('Paid.') });
    const { callTool } = client;
    client.callTool = (params, options) => (params.name === 'pay' ? Promise.reject(error) : callTool.call(client, params, options));
    const refused = await begin();
    assert.deepEqual([refused.outcome, refused.followUps[0]?.status, merged(refused).isError], ['failed', 'not_made', false]);
    client.callTool = callTool;
    assert.equal((await begin()).outcome, 'completed');
  }
});

test('a server that did not advertise is not followed, unless the user said so', async () => {
  const tools = { prepare: () => leadsTo('pay'), pay: () => says('Paid.') };
  const { begin, log } = await chained(tools, { advertises: false });
  assert.equal((await begin()).outcome, 'declined');
  assert.deepEqual(log, ['prepare']);
  assert.equal((await begin({ followUnadvertised: true })).outcome, 'completed');
});

test('an interim result that nobody finishes is no result', async () => {
  const task = { taskId: 't', status: 'working', ttl: null, createdAt: '2026-11-22T00:00:00Z', lastUpdatedAt: '2026-11-22T00:00:00Z' };
  const { client } = await chained({ prepare: () => leadsTo('pay'), pay: () => says('Paid.') });
  const old = version1({
    callTool: async () => ({ ...leadsTo('pay'), task }),
    listTools: () => client.listTools(),
    getServerCapabilities: () => CAPABILITIES,
  });
  const chain = await callWithChaining(old, { name: 'prepare' }, { allow: yes });
  assert.deepEqual([chain.outcome, chain.results.length], ['failed', 0]);
});

test('the user can cancel while being asked, and a time limit is no cancelling', async () => {
  const { begin } = await chained({ prepare: () => leadsTo('pay'), pay: () => says('Paid.') });
  const user = new AbortController();
  const asked = await begin({ allow: () => new Promise(() => user.abort()), signal: user.signal });
  assert.deepEqual([asked.outcome, asked.followUps[0]?.status], ['cancelled', 'not_made']);
  const time = new AbortController(); // as an AbortSignal.timeout ends
  const late = await begin({ allow: () => new Promise(() => time.abort(new DOMException('', 'TimeoutError'))), signal: time.signal });
  assert.deepEqual([late.outcome, late.followUps[0]?.status], ['failed', 'not_made']);
});

test('cancelling after a result ends a chain that has a next step, and no other', async () => {
  for (const [result, outcome, status] of [[says('Done.'), 'completed', undefined], [leadsTo('pay'), 'cancelled', 'not_made']] as const) {
    const user = new AbortController();
    const { begin, client, log } = await chained({ prepare: () => result, pay: () => says('Paid.') });
    const { callTool } = client;
    client.callTool = (params, options) => callTool.call(client, params, options).finally(() => user.abort());
    const chain = await begin({ signal: user.signal });
    assert.deepEqual([chain.outcome, chain.followUps[0]?.status, log], [outcome, status, ['prepare']]);
  }
});

test('a policy that throws has not agreed', async () => {
  const { begin } = await chained({ prepare: () => leadsTo('pay'), pay: () => says('Paid.') });
  assert.equal((await begin({ allow: () => Promise.reject(new Error('no policy')) })).outcome, 'declined');
});

test('a first call without a result is an error', async () => {
  const { begin } = await chained({ prepare: () => says('Done.') });
  const chain = await begin({ signal: AbortSignal.abort(new Error('too late')) });
  assert.equal(chain.outcome, 'cancelled');
  assert.throws(() => merged(chain), /too late/);
});

test('a client of version 1 is one client, however often it is wrapped', () => {
  const client = { callTool: async () => ({}), listTools: async () => ({}), getServerCapabilities: () => ({}) };
  assert.equal(version1(client), version1(client));
});

const TOOLS = ['pay', 'notify'].map((name) => ({
  name,
  inputSchema: { type: 'object' as const, properties: { amount: { type: 'number' as const } } },
}));

/** Calls `pay`, which leads to `notify`, with a client that declares the extension or not. */
async function paid(options: ChainOptions, declaring = false) {
  const mcp = new McpServer({ name: 'shop', version: '1' }, { capabilities: { tools: {}, ...CAPABILITIES } });
  const inputSchema = fromJsonSchema<{ amount?: number }>(TOOLS[0]?.inputSchema ?? {});
  mcp.registerTool('pay', { inputSchema }, ({ amount }, ctx) => {
    const next = { tool: 'notify', arguments: { amount }, title: 'Tell the bank' };
    return withNextTool(says('Paid.'), next, TOOLS, { follows: follows(mcp.server, ctx) });
  });
  mcp.registerTool('notify', { inputSchema }, () => says('The bank was told.'));
  const client = new Client({ name: 'desk', version: '1' }, { capabilities: declaring ? CAPABILITIES : {} });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await mcp.connect(there);
  await client.connect(here);
  return callWithChaining(client, { name: 'pay', arguments: { amount: 5 } }, options);
}

test('a chain of both halves is one result, without directive, words or title', async () => {
  const chain = await paid({ allow: ({ title }) => title === 'Tell the bank' });
  const said = 'Follow-up calls by the client, as the server directed: Call 2, "notify", was made; what it returned stands above. Do not repeat it.';
  const content = [...says('Paid.').content, ...says('The bank was told.').content];
  assert.deepEqual(merged(chain), {
    content: [...content, { type: 'text', text: said, annotations: { audience: ['assistant'] } }],
    isError: false,
  });
});

test('the server words the step where the client did not declare, and the client hands that on to nobody', async () => {
  const chain = await paid({});
  assert.equal(chain.outcome, 'declined');
  const words = /^Next step suggested by this server: .*call the tool "notify" once, with exactly these arguments: \{"amount":5\}$/;
  assert.match(texts(chain.results[0] ?? says('')).at(-1) ?? '', words);
  assert.equal(texts(merged(chain)).length, 2);
  assert.match(told(chain), /"notify", was not made: the policy or the user did not agree\.$/);
  assert.deepEqual(texts((await paid({}, true)).results[0] ?? says('')), ['Paid.']);
});

test('a directive that breaks a rule is not sent', () => {
  const why: string[] = [];
  const hidden = { name: 'hidden', inputSchema: {}, _meta: { ui: { visibility: ['app'] } } };
  for (const next of [
    { tool: 'Notify' },
    { tool: 'hidden' },
    { tool: 'notify', arguments: { amount: 'five' } },
    { tool: 'notify', arguments: { amount: Infinity } },
    { tool: 'notify', arguments: { note: '\ud834' } },
    { tool: 'notify', title: 'two\nlines' },
    { tool: 'notify', title: 'x'.repeat(201) },
    { tool: 'notify', title: 'turned \u200f round' },
  ]) assert.deepEqual(withNextTool(says('Paid.'), next, [...TOOLS, hidden], { follows: true }, (one) => why.push(one)), says('Paid.'));
  assert.deepEqual(why.map((one) => /TC-S-(\d\d)/.exec(one)?.[1]), ['12', '12', '14', '26', '26', '27', '27', '27']);
});
