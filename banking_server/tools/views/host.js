"use strict";

/* The host around this view: JSON-RPC over `postMessage`, as MCP Apps has it (2026-01-26).

   Only the window around this one is listened to, and once it has answered, only its origin. The
   greeting goes to whoever that window is, and holds nothing; all that follows goes to that origin
   alone. Where it has none of its own ("null"), nothing else can be named than any. */

const host = (() => {
  // Some hosts put the whole document into a body of their own, where a policy counts for nothing.
  const policy = [...document.querySelectorAll("meta[http-equiv=Content-Security-Policy]")].at(-1);
  if (!document.head.contains(policy)) document.head.append(policy);

  const waiting = new Map();
  const listeners = new Map();
  let origin = null;
  let capabilities = {};
  let lastId = 0;

  const isObject = (value) => value !== null && typeof value === "object";

  function post(message) {
    const to = origin === null || origin === "null" ? "*" : origin;
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, to);
  }

  function request(method, params) {
    lastId += 1;
    const id = lastId;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      post({ id, method, params });
    });
  }

  function answer(id, method) {
    if (method === "ping" || method === "ui/resource-teardown") {
      listeners.get(method)?.();
      post({ id, result: {} });
    } else {
      post({ id, error: { code: -32601, message: "Method not found" } });
    }
  }

  window.addEventListener("message", (event) => {
    const message = event.data;
    if (event.source !== window.parent || !isObject(message) || message.jsonrpc !== "2.0") return;
    if (origin !== null && event.origin !== origin) return;
    if (typeof message.method === "string") {
      if (origin === null) return;
      if (message.id !== undefined) answer(message.id, message.method);
      else listeners.get(message.method)?.(isObject(message.params) ? message.params : {});
      return;
    }
    const asked = waiting.get(message.id);
    if (asked === undefined) return;
    origin ??= event.origin;
    waiting.delete(message.id);
    if (isObject(message.result)) asked.resolve(message.result);
    else asked.reject(new Error(String(message.error?.message ?? "No answer came.")));
  });

  return {
    /** Call `listener` with the params of each notification `method`, or when that is asked. */
    on(method, listener) {
      listeners.set(method, listener);
    },

    /** Greet the host, and return its context: theme, styles, locale. */
    async greet() {
      const greeting = await request("ui/initialize", {
        protocolVersion: "2026-01-26",
        appInfo: { name: "banking-server", version: "1" },
        appCapabilities: { availableDisplayModes: ["inline"] },
      });
      capabilities = isObject(greeting.hostCapabilities) ? greeting.hostCapabilities : {};
      post({ method: "ui/notifications/initialized", params: {} });
      return isObject(greeting.hostContext) ? greeting.hostContext : {};
    },

    /** Call a tool of the bank through the host. A call that brings no result is an error result that
        is `unanswered`: whether it was done is not known. */
    async call(name, given) {
      try {
        return await request("tools/call", { name, arguments: given });
      } catch (error) {
        const text = `No answer came from the bank: ${error.message}`;
        return { isError: true, unanswered: true, content: [{ type: "text", text }] };
      }
    },

    /** Let the model know, the next time it is asked something, what the customer did here. */
    mention(text) {
      if (!isObject(capabilities.updateModelContext)) return;
      request("ui/update-model-context", { content: [{ type: "text", text }] }).catch(() => {});
    },

    /** Tell the host how much room this view takes. */
    resize(width, height) {
      post({ method: "ui/notifications/size-changed", params: { width, height } });
    },
  };
})();
