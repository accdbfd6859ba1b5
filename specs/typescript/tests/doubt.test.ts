/** What a later chain might repeat, what ends the doubt (TC-C-55), and chains side by side (TC-C-57). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ProtocolError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { Conversation, Follower, NobodyToAsk, trustHints, type ConsentPolicy } from '../src/client.ts';
import { asking, connected, fails, leadsTo, says, type Answer, type Hints } from './support.ts';

const ADDS = { readOnlyHint: false, destructiveHint: false, openWorldHint: false };
const A_DAY = 24 * 3_600_000;

/** An answer by which the client cannot know what was done. */
const lost: Answer = () => Promise.reject(new ProtocolError(-32603, 'The process died.'));
const refused = (code: number): Answer => () => Promise.reject(new ProtocolError(code, 'No.'));
const task = { taskId: 't', status: 'working', ttl: null, createdAt: '2026-11-22T00:00:00Z', lastUpdatedAt: '2026-11-22T00:00:00Z' };

/** `prepare` names `pay`, with a new id each time; `pay` gives these answers, and then says that it has paid. */
async function bank(answers: Answer[], { hints = ADDS, shared = false }: { hints?: Hints; shared?: boolean } = {}) {
  const paid: unknown[] = [];
  const time = { now: 0 };
  const conversation = new Conversation({ shared, now: () => time.now });
  const connect = () => connected({
    prepare: ({ to }) => leadsTo('pay', { to, id: `tr_${paid.length}` }),
    pay: (args) => {
      paid.push(args);
      return (answers.shift() ?? (() => says('Paid.')))(args);
    },
    notify: () => new Promise<never>(() => undefined),
  }, { hints: { pay: hints, notify: ADDS } });
  const { client, names } = await connect();
  const call = (name: string, args: object, consent: ConsentPolicy = trustHints, signal?: AbortSignal) =>
    new Follower(client, { consent, conversation }).callTool({ name, arguments: { ...args } }, { signal });
  const prepare = (to = 'Ann', consent?: ConsentPolicy, signal?: AbortSignal) => call('prepare', { to }, consent, signal);
  return { call, client, connect, conversation, names, paid, prepare, time };
}

for (const [what, answer, hints, same, other] of [
  ['a lost answer counts for the whole conversation', lost, ADDS, 'declined', 'declined'],
  ['an error counts for an equal first call', () => fails('The back end did not answer.'), ADDS, 'declined', 'completed'],
  ['an error of an idempotent tool', () => fails('Busy.'), { ...ADDS, idempotentHint: true }, 'completed', 'completed'],
  ['a lost answer of an idempotent tool', lost, { ...ADDS, idempotentHint: true }, 'declined', 'declined'],
  ['a tool that only reads', lost, { readOnlyHint: true }, 'completed', 'completed'],
  ['a missing capability of the client', refused(-32021), ADDS, 'completed', 'completed'],
  ['the wrong headers', refused(-32020), ADDS, 'completed', 'completed'],
  ['another error may come after the payment', refused(-32602), ADDS, 'declined', 'declined'],
  ['a task', () => ({ content: [], task }), ADDS, 'declined', 'completed'],
  ['a result', () => says('Paid.'), ADDS, 'completed', 'completed'],
] as [string, Answer, Hints, string, string][]) {
  test(`in doubt or not: ${what}`, async () => {
    for (const [to, outcome] of [['Ann', same], ['Bob', other]] as const) {
      const { paid, prepare } = await bank([answer], { hints });
      await prepare('Ann');
      const chain = await prepare(to);
      assert.deepEqual([chain.outcome, paid.length], [outcome, outcome === 'completed' ? 2 : 1]);
      assert.equal(chain.followUps[0]?.suggested, undefined); // a model gets no call that may have taken effect
    }
  });
}

test('HTTP 403 leaves no doubt', async () => {
  const { client, prepare } = await bank([]);
  const { request } = client;
  const forbidden = new SdkHttpError(SdkErrorCode.ClientHttpForbidden, 'Forbidden', { status: 403 });
  client.request = (...args: unknown[]) =>
    JSON.stringify(args[0]).includes('"pay"') ? Promise.reject(forbidden) : Reflect.apply(request, client, args);
  const chain = await prepare();
  assert.deepEqual([chain.outcome, chain.followUps[0]?.status], ['failed', 'not_made']);
  client.request = request;
  assert.equal((await prepare()).outcome, 'completed');
});

for (const [what, between, answers, outcome] of [
  ['the result of an equal call', { to: 'Ann', id: 'tr_0' }, [lost], 'completed'],
  ['the result of another call', { to: 'Bob', id: 'tr_0' }, [lost], 'declined'],
  ['an error of an equal call', { to: 'Ann', id: 'tr_0' }, [lost, () => fails('Busy.')], 'declined'],
] as [string, object, Answer[], string][]) {
  test(`what ends a doubt: ${what}`, async () => {
    const { call, prepare } = await bank(answers);
    await prepare();
    await call('pay', between);
    assert.equal((await prepare()).outcome, outcome);
  });
}

test('a first call that was lost counts too', async () => {
  const { call, prepare } = await bank([lost]);
  assert.equal((await call('pay', { to: 'Cid' })).outcome, 'failed');
  assert.equal((await prepare()).outcome, 'declined');
});

test("a person's yes ends a doubt once the call was sent, and no sooner", async () => {
  for (const [answers, last] of [[[lost], 'allows'], [[lost, refused(-32020)], 'allowsAgain']] as [Answer[], string][]) {
    const { prepare } = await bank(answers);
    const person = asking(true, true);
    for (let turn = 0; turn < 3; turn++) await prepare('Ann', person);
    assert.deepEqual(person.asked, ['allows', 'allowsAgain', last]);
  }
});

test('a policy that cannot ask agrees to no call in doubt, and none is suggested', async () => {
  const nobody = () => { throw new NobodyToAsk(); };
  for (const consent of [undefined, { allows: nobody }, { allows: () => true }, { allows: () => true, allowsAgain: nobody }]) {
    const { client, conversation, paid, prepare } = await bank([lost]);
    await prepare();
    const chain = await new Follower(client, { consent, conversation }).callTool({ name: 'prepare', arguments: { to: 'Ann' } });
    assert.deepEqual([chain.outcome, chain.followUps[0]?.suggested, paid.length], ['declined', undefined, 1]);
  }
});

test('a doubt outlives the connection, and lasts a day', async () => {
  const { connect, conversation, prepare, time } = await bank([lost]);
  await prepare();
  const follower = new Follower((await connect()).client, { consent: trustHints, conversation });
  const again = async () => (await follower.callTool({ name: 'prepare', arguments: { to: 'Ann' } })).outcome;
  time.now = A_DAY - 1;
  assert.equal(await again(), 'declined');
  time.now = A_DAY;
  assert.equal(await again(), 'completed');
});

test('conversations that cannot be told apart do not block each other, and agree to nothing for each other', async () => {
  const { prepare } = await bank([lost], { shared: true });
  await prepare('Ann');
  assert.equal((await prepare('Ann', asking(true, true))).outcome, 'completed');
  assert.equal((await prepare('Ann')).outcome, 'declined');
  assert.equal((await prepare('Bob')).outcome, 'completed');
});

test('the record is bounded', () => {
  const conversation = new Conversation();
  for (let key = 0; key < 1_005; key++) conversation.start({ tool: 'pay', key: `${key}`, first: '' })('unknown');
  const doubts = conversation.doubts({ tool: 'pay', key: '', first: '' });
  assert.deepEqual([doubts.length, doubts[0]?.key], [1_000, '5']);
});

test('a payment whose merged result was not delivered is not made again', async () => {
  const user = new AbortController();
  const { conversation, client, names, prepare } = await bank([() => leadsTo('notify')]);
  const cancelled = prepare('Ann', trustHints, user.signal);
  while (!names().includes('notify')) await turn();
  user.abort();
  assert.equal((await cancelled).outcome, 'cancelled');
  assert.deepEqual([(await prepare('Ann')).outcome, (await prepare('Bob')).outcome], ['declined', 'completed']);
  // A host that drops a result for another reason says so.
  const follower = new Follower(client, { consent: trustHints, conversation });
  const cid = { name: 'prepare', arguments: { to: 'Cid' } };
  follower.notDelivered(await follower.callTool(cid));
  assert.equal((await follower.callTool(cid)).outcome, 'declined');
});

for (const [what, to, most] of [
  ['different first calls run at once', (n: number) => `Ann ${n}`, 5],
  ['equal first calls take turns', () => 'Ann', 1],
] as const) {
  test(`five chains side by side complete: ${what}`, async () => {
    let running = 0;
    let atOnce = 0;
    const pay = async () => {
      atOnce = Math.max(atOnce, ++running);
      for (let wait = 0; wait < 50; wait++) await turn();
      running--;
      return says('Paid.');
    };
    const { paid, prepare } = await bank(Array(5).fill(pay));
    const person = asking();
    const chains = await Promise.all([0, 1, 2, 3, 4].map((n) => prepare(to(n), n % 2 ? person : trustHints)));
    assert.deepEqual(chains.map(({ outcome }) => outcome), Array(5).fill('completed'));
    assert.deepEqual([paid.length, atOnce, person.asked], [5, most, ['allows', 'allows']]);
  });
}

test('a chain that waited looks at the record again', async () => {
  const { paid, prepare } = await bank([lost]);
  const outcomes = (await Promise.all([prepare(), prepare(), prepare()])).map(({ outcome }) => outcome);
  assert.deepEqual([outcomes.sort(), paid.length], [['declined', 'declined', 'failed'], 1]);
});

test('who agreed before another call was lost is asked again', async () => {
  const { promise: bothAsked, resolve } = Promise.withResolvers<boolean>();
  const person = asking(() => (person.asked.length === 2 && resolve(true), bothAsked));
  const { paid, prepare } = await bank([lost]);
  await Promise.all([prepare('Ann', person), prepare('Ann', person)]);
  assert.deepEqual([person.asked, paid.length], [['allows', 'allows', 'allowsAgain'], 1]);
});

test('a chain that waits for another one can be cancelled', async () => {
  const [user, other] = [new AbortController(), new AbortController()];
  const { conversation, paid, prepare } = await bank([() => new Promise<never>(() => undefined)]);
  const before = prepare('Ann', trustHints, other.signal);
  while (paid.length === 0) await turn();
  const { running } = conversation;
  conversation.running = (call) => {
    const found = running.call(conversation, call);
    if (found) user.abort();
    return found;
  };
  const { outcome, followUps } = await prepare('Ann', trustHints, user.signal);
  assert.deepEqual([outcome, followUps[0]?.status], ['cancelled', 'not_made']);
  other.abort();
  await before;
});
