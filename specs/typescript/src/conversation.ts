/**
 * The record of doubt, and the turns of equal chains (TC-C-55, TC-C-57).
 *
 * A chain that did not end well may have paid all the same. Whoever asked for it begins again, and a new chain with an
 * equal first call would pay a second time. So the host keeps each follow-up call until its chain ends well. Until then,
 * the tool of the call is in doubt for other chains.
 */
import { randomUUID } from 'node:crypto';
import { canonical, type Json } from './directive.ts';

const MAX_ENTRIES = 1_000;
const MAX_RECALLED = 100;

/** Milliseconds after the end of a chain in which a cancellation of it still counts. */
const RECALL_FOR = 60_000;

/** Milliseconds. A call stays in doubt for one after the end of its chain if it succeeded, and else for 24. */
const HOUR = 3_600_000;

/** A tool, and what makes two calls equal: the tool and the canonical arguments. */
export interface Call {
  tool: string;
  key: string;
}

/** Returns what a call equals. A call that RFC 8785 cannot write equals no other. */
export function callOf(tool: string, args: Json): Call {
  try {
    return { tool, key: canonical([tool, args]) };
  } catch {
    return { tool, key: randomUUID() };
  }
}

/**
 * What a call brought. `refused`: the server refused it before it acted. `none`: it ended unanswered. `failure`: it was
 * answered without success, with `isError`, a task, or the error -32602. `success`: a complete result without `isError`.
 */
export type Answer = 'running' | 'refused' | 'none' | 'failure' | 'success';

/** A chain, as the record knows it. `began` and `ended` number the events of the record; `turn` is over at its end. */
export interface Chained {
  id: string;
  first: Call;
  began: number;
  ended: number;
  endedAt: number;
  turn?: PromiseWithResolvers<void>;
}

/** A call that was sent. `agreed` has the first calls for whose chains the user agreed to a repetition. */
export interface Entry {
  chain: Chained;
  call: Call;
  sent: number;
  answer: Answer;
  agreed: Set<string>;
}

const isFirst = ({ chain, call }: Entry) => call.key === chain.first.key;

/**
 * What a host remembers of its conversation with a user, about one server. Keep one object for a conversation, over
 * new connections and restarts of the server.
 */
export class Conversation {
  #entries: Entry[] = [];
  #endedWell: { chain: Chained; own: Entry[] }[] = [];
  #linedUp: Chained[] = [];
  #events = 0;
  #shared: boolean;
  #now: () => number;

  /**
   * `shared` says that several users who cannot be told apart use this record. Then a call is in doubt for chains with
   * an equal first call only, and no user's yes ends that. `now` returns the time in milliseconds.
   */
  constructor({ shared = false, now = () => performance.now() } = {}) {
    this.#shared = shared;
    this.#now = now;
  }

  /** Returns a new chain. */
  begin(id: string, first: Call): Chained {
    return { id, first, began: ++this.#events, ended: Infinity, endedAt: Infinity };
  }

  /**
   * Gives a chain its turn, the first time, among those with an equal first call. Returns what to wait for: the ends of
   * the chains before it (TC-C-57).
   */
  lineUp(chain: Chained): Promise<void>[] {
    if (chain.turn) return [];
    chain.turn = Promise.withResolvers();
    this.#linedUp.push(chain);
    const ahead = this.#linedUp.filter((one) => one !== chain && one.first.key === chain.first.key);
    return ahead.flatMap(({ turn }) => turn?.promise ?? []);
  }

  /** Notes that a call is sent, and keeps a follow-up call if `keep`. The user knew of the entries `agreed`. */
  send(chain: Chained, call: Call, keep: boolean, agreed: Entry[] = []): Entry {
    const entry: Entry = { chain, call, sent: ++this.#events, answer: 'running', agreed: new Set() };
    if (!this.#shared) for (const known of agreed) known.agreed.add(chain.first.key);
    if (keep && !isFirst(entry)) this.#keep(entry);
    return entry;
  }

  /** Notes how a call ended. A first call enters the record if it ended unanswered. */
  answered(entry: Entry, answer: Answer): void {
    entry.answer = answer;
    if (answer === 'refused') this.#endWhere((known) => known === entry);
    if (answer === 'none' && isFirst(entry)) this.#keep(entry);
    if (answer !== 'success' || this.#shared) return;
    const { chain, call, sent } = entry;
    this.#endWhere((known) =>
      known.answer !== 'success' && known.call.key === call.key && known.chain.ended < sent &&
      (isFirst(entry) || known.chain.first.key === chain.first.key));
  }

  /** Notes that a chain ended, and its turn. After a good end, none of its calls is in doubt any more. */
  end(chain: Chained, well: boolean): void {
    [chain.ended, chain.endedAt] = [++this.#events, this.#now()];
    this.#linedUp = this.#linedUp.filter((one) => one !== chain);
    chain.turn?.resolve();
    if (!well) return;
    const own = this.#entries.filter((known) => known.chain === chain);
    this.#endedWell = [...this.#endedWell.slice(1 - MAX_RECALLED), { chain, own }];
    this.#endWhere((known) => known.chain === chain);
    if (this.#shared) return;
    this.#endWhere((known) =>
      known.answer !== 'none' && known.chain.first.key === chain.first.key && known.chain.ended < chain.began);
  }

  /** Notes that a chain was cancelled after its good end. If that was recent, it ended now. */
  recall(id: string): void {
    const recalled = this.#endedWell.find(({ chain }) => chain.id === id);
    if (!recalled || this.#now() - recalled.chain.endedAt > RECALL_FOR) return;
    this.#endedWell = this.#endedWell.filter((one) => one !== recalled);
    this.end(recalled.chain, false);
    recalled.own.forEach((entry) => this.#keep(entry));
  }

  /**
   * Returns the entries that put the tool of a call in doubt for a chain. A call that trusted hints mark as idempotent
   * may repeat those that it equals.
   */
  doubts(chain: Chained, call: Call, idempotent: boolean): Entry[] {
    const now = this.#now();
    this.#endWhere(({ chain, answer }) => now - chain.endedAt > (answer === 'success' ? HOUR : 24 * HOUR));
    const first = chain.first.key;
    return this.#entries.filter((known) =>
      known.chain !== chain && known.call.tool === call.tool && !known.agreed.has(first) &&
      !(idempotent && known.call.key === call.key) &&
      (known.chain.first.key === first || (known.answer === 'none' && !this.#shared)));
  }

  /** Adds an entry. Where the record is full, entries without an answer go last. */
  #keep(entry: Entry): void {
    if (this.#entries.length === MAX_ENTRIES) {
      const answered = this.#entries.findIndex(({ answer }) => answer === 'success' || answer === 'failure');
      this.#entries.splice(Math.max(answered, 0), 1);
    }
    this.#entries.push(entry);
  }

  #endWhere(isOver: (entry: Entry) => boolean): void {
    this.#entries = this.#entries.filter((entry) => !isOver(entry));
  }
}
