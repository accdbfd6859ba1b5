/** The record of doubt: which calls a later chain could make twice (TC-C-55, TC-C-57). */
import { randomUUID } from 'node:crypto';
import { canonical, type Json } from './directive.ts';

/** The doubts that one record holds at most; the oldest one goes first. */
const MAX_DOUBTS = 1_000;

/** What makes two calls equal: the tool and the canonical arguments. */
export type CallKey = string;

/** Returns the key of a call. A call that RFC 8785 cannot write equals no other. */
export function keyOf(tool: string, args: Json): CallKey {
  try {
    return canonical([tool, args]);
  } catch {
    return randomUUID();
  }
}

/** A call of a chain. `key` and `first`, the first call of its chain, say what it equals. */
export interface Call {
  tool: string;
  key: CallKey;
  first: CallKey;
}

/** A call that a later chain might repeat. */
export interface Doubt extends Call {
  /** Whether its tool is in doubt in every chain, or only in those with an equal first call. */
  everywhere: boolean;
  since: number;
}

/**
 * How a call ended. `refused`: the server refused it before it acted. `succeeded`: its result has no `isError`.
 * `failed`: it has, and nothing is in doubt because of it. `doubtful`: it may not be made again for the same first
 * call. `unknown`: nor for any other.
 */
export type Ending = 'refused' | 'succeeded' | 'failed' | 'doubtful' | 'unknown';

/**
 * What a host remembers of its conversation with a user, about one server. Keep one object for a conversation, over
 * new connections and new starts of the server.
 */
export class Conversation {
  #doubts: Doubt[] = [];
  #running = new Map<Call, Promise<void>>();
  #rememberFor: number;
  #shared: boolean;
  #now: () => number;

  /**
   * `rememberFor` is the time in milliseconds that a doubt lasts, and `now` returns the time. `shared` says that
   * conversations which cannot be told apart use this record. Then a doubt concerns only chains with an equal first
   * call, and no user's yes ends it.
   */
  constructor({ rememberFor = 24 * 3_600_000, shared = false, now = () => performance.now() } = {}) {
    this.#rememberFor = rememberFor;
    this.#shared = shared;
    this.#now = now;
  }

  /** Returns the reasons why a tool is in doubt for a chain with this first call. */
  doubts({ tool, first }: Call): Doubt[] {
    const oldest = this.#now() - this.#rememberFor;
    this.#doubts = this.#doubts.filter(({ since }) => since > oldest);
    return this.#doubts.filter((doubt) => doubt.tool === tool && (doubt.everywhere || doubt.first === first));
  }

  /** Returns a promise that a call of the tool ended, if a chain with an equal first call has one running. */
  running({ tool, first }: Call): Promise<void> | undefined {
    const call = [...this.#running.keys()].find((call) => call.tool === tool && call.first === first);
    return call && this.#running.get(call);
  }

  /**
   * Records that a call starts; the function that it returns must be called when the call has ended. `agreed` are the
   * doubts that the user knew when agreeing to it: they end unless the server refuses the call.
   */
  start(call: Call, agreed: Doubt[] = []): (ending: Ending) => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#running.set(call, promise);
    return (ending) => {
      this.#running.delete(call);
      resolve();
      if (ending === 'refused') return;
      if (!this.#shared) this.#doubts = this.#doubts.filter((doubt) => !agreed.includes(doubt));
      if (ending === 'succeeded') this.#doubts = this.#doubts.filter(({ key }) => key !== call.key);
      if (ending === 'doubtful') this.add(call);
      if (ending === 'unknown') this.add(call, !this.#shared);
    };
  }

  /** Puts a call in doubt, for chains with an equal first call alone unless `everywhere`. */
  add(call: Call, everywhere = false): void {
    this.#doubts = [...this.#doubts.slice(1 - MAX_DOUBTS), { ...call, everywhere, since: this.#now() }];
  }
}
