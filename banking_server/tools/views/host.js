"use strict";

/* The host around this view: JSON-RPC over `postMessage`, as in MCP Apps (2026-01-26).

   The view accepts messages only from the parent window, and after the first answer only from that
   window's origin. The first request is sent to any origin, and contains no data. All later messages
   are sent only to the known origin. If that origin is "null", they can only be sent to any origin. */

const host = (() => {
  // Some hosts put the whole document into a body of their own. A policy has no effect there.
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
    const isKnown = method === "ping" || method === "ui/resource-teardown";
    const error = { code: -32601, message: "Method not found" };
    post(isKnown ? { id, result: {} } : { id, error });
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
    /** Call `listener` with the params of each notification `method`. */
    on(method, listener) {
      listeners.set(method, listener);
    },

    /** Initialize the connection, and return the host's context: theme, styles, locale. */
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

    /** Call a tool of the bank through the host. A call without a result returns an error result with
        `unanswered`: whether it was done is not known. */
    async call(name, given) {
      try {
        return await request("tools/call", { name, arguments: given });
      } catch (error) {
        const text = `No answer came from the bank: ${error.message}`;
        return { isError: true, unanswered: true, content: [{ type: "text", text }] };
      }
    },

    /** Add to the model's context what the customer did here. */
    mention(text) {
      if (!isObject(capabilities.updateModelContext)) return;
      request("ui/update-model-context", { content: [{ type: "text", text }] }).catch(() => {});
    },

    /** Tell the host the size of this view. */
    resize(width, height) {
      post({ method: "ui/notifications/size-changed", params: { width, height } });
    },
  };
})();
