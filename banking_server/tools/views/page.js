/* The parts that all views share: elements, texts for people, the host's theme, and the steps of a
   chain. Data is only shown as text: no markup in it is interpreted.

   The order of every card: what it is about, the customer's next choice, and only then the rest. So
   the choice is in sight in a small frame. */

const DATA = "com.example/bank-view";
const CHAINING = "com.example/tool-chaining";
const DRAWING = "http://www.w3.org/2000/svg";

const ICONS = {
  lock: "M7 11V8a5 5 0 0 1 10 0v3M6 11h12v9H6z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  clock: "M12 7v5l3.2 2M12 3.5a8.5 8.5 0 1 0 0 17a8.5 8.5 0 1 0 0-17",
  list: "M5 6.5h14M5 12h14M5 17.5h9",
  next: "M9 5.5l6.5 6.5L9 18.5",
  person: "M12 4a4 4 0 1 0 0 8a4 4 0 1 0 0-8M4.5 20.5a7.5 7.5 0 0 1 15 0",
  phone: "M6 4h4l1.6 4.6-2.4 1.6a11 11 0 0 0 4.6 4.6l1.6-2.4L20 14v4a2 2 0 0 1-2 2A14 14 0 0 1 4 6a2 2 0 0 1 2-2z",
  talk: "M4 5h16v11H11l-4.5 4v-4H4z",
  wallet: "M4 7.5h16v12H4zM4 7.5l11-3.5v3.5M15.5 13.5h1.5",
};

let locale = "en";
let timeZone;

/* Invisible characters, and characters that change the order of the text around them. */
const UNFIT = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** Return a new element: `made("p", {class: "quiet"}, "words", otherElement)`. */
function made(tag, members = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined || value === false) continue;
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) {
    if (child instanceof Node) element.append(child);
    else if (child !== undefined && child !== null && child !== false) {
      element.append(String(child).replace(UNFIT, "\ufffd"));
    }
  }
  return element;
}

/** Return one of the drawings above. The text beside it has the same meaning. */
function icon(name) {
  const drawing = document.createElementNS(DRAWING, "svg");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("aria-hidden", "true");
  drawing.setAttribute("class", "icon");
  const line = document.createElementNS(DRAWING, "path");
  line.setAttribute("d", ICONS[name]);
  drawing.append(line);
  return drawing;
}

function badge(words, kind, drawn) {
  return made("span", { class: `badge ${kind}` }, drawn && icon(drawn), words);
}

/** Return the heading of a card or of a part, with a mark whose colour depends on its kind. */
function heading(words, kind, drawn, level = "h1") {
  const mark = made("span", { class: `mark ${kind}` }, icon(drawn));
  return made("header", {}, mark, made(level, { tabindex: "-1" }, words));
}

/** Return a button. While its action runs, no button can be pressed. */
function button(words, kind, act, drawn) {
  const inside = [drawn && icon(drawn), made("span", {}, words)];
  const pressed = ({ currentTarget }) => {
    if (!currentTarget.hasAttribute("aria-disabled")) busyWith(act);
  };
  return made("button", { type: "button", class: kind, onclick: pressed }, ...inside);
}

/** Return buttons of the same width, side by side where there is room. */
function row(...buttons) {
  return made("div", { class: "row" }, ...buttons);
}

/** Return a field and the button that sends its value. It is no form element: hosts may forbid
    them. Below it are the other buttons, and above them what is wrong. */
function entry({ label, help, problem, words, send, others = [], ...members }) {
  const field = made("input", { id: "entry", required: true, "aria-describedby": help && "help", ...members });
  const act = async () => {
    if (field.reportValidity()) await send(field.value);
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") busyWith(act);
  });
  return made(
    "div",
    { class: "entry" },
    made("label", { for: "entry" }, label),
    field,
    help && made("p", { class: "quiet", id: "help" }, help),
    problem && made("p", { class: "problem", role: "alert" }, problem),
    row(button(words, "primary", act), ...others),
  );
}

/** Disable a button for a moment: a click may be meant for what was there before. */
function notAtOnce(pressed) {
  pressed.setAttribute("aria-disabled", "true");
  setTimeout(() => pressed.removeAttribute("aria-disabled"), 600);
  return pressed;
}

const WAIT = "One moment …";

function isBusy() {
  return document.getElementById("view").getAttribute("aria-busy") === "true";
}

async function busyWith(act) {
  if (isBusy()) return;
  const view = document.getElementById("view");
  view.setAttribute("aria-busy", "true");
  say(WAIT);
  try {
    await act();
  } finally {
    view.setAttribute("aria-busy", "false");
    if (document.getElementById("said").textContent === WAIT) say("");
  }
}

/** Show a card. After an act of the customer (`acted`), it gets the focus and is read out. */
function show(card, acted = false) {
  const view = document.getElementById("view");
  view.replaceChildren(card);
  view.setAttribute("aria-busy", "false");
  if (acted) reach(card);
}

/** Move the focus to a new part. */
function reach(card) {
  card.querySelector("h1, h2")?.focus();
}

/** Announce a text to screen readers. */
function say(words) {
  document.getElementById("said").textContent = words;
}

// --- polling ------------------------------------------------------------------------------------

const FIRST_LOOK = 15_000;
const LONGEST_WAIT = 120_000;
const MOST_LOOKS = 20;

/** Call `look` now and then while `element` is shown, until it returns false or was called `MOST_LOOKS`
    times. The pause doubles each time, up to `LONGEST_WAIT`: some hosts list every call, and these
    calls should not hide the others. */
function keepLooking(element, look, looks = 0) {
  if (looks === MOST_LOOKS) return;
  setTimeout(async () => {
    if (!element.isConnected) return;
    const isOver = document.visibilityState === "visible" && !(await look());
    if (!isOver) keepLooking(element, look, looks + 1);
  }, Math.min(FIRST_LOOK * 2 ** looks, LONGEST_WAIT));
}

/** Return a line about something that is still to come. */
function waiting(words) {
  return made("p", { class: "waits" }, made("i", { class: "dot" }), words);
}

function waitingCard(words) {
  show(made("article", { class: "card" }, waiting(words)));
  document.getElementById("view").setAttribute("aria-busy", "true");
}

// --- texts ---------------------------------------------------------------------------------------

/** Return an amount for people: `5,250.75 USD`, in the host's locale. */
function money(amount, currency) {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return `${new Intl.NumberFormat(locale, digits).format(amount)} ${currency}`;
}

function time(moment, how) {
  return new Intl.DateTimeFormat(locale, { timeZone, ...how }).format(new Date(moment));
}

/** Return a date and time in the customer's time zone, with its name: `2 Mar 2026, 10:10 UTC`. */
function dateAndTime(moment) {
  const date = { day: "numeric", month: "short", year: "numeric" };
  return time(moment, { ...date, hour: "numeric", minute: "2-digit", timeZoneName: "short" });
}

/** Return a date without a time, which is the same in every time zone. */
function day(date) {
  return time(`${date}T12:00:00Z`, { dateStyle: "long", timeZone: "UTC" });
}

/** What an id names that is not an account's. */
const NAMED = { transferId: "transfer", expiredTransferId: "transfer", handoffId: "request" };

/** Return the message of a result in words for the customer. */
function message(result) {
  const { message: told, status, field } = result.structuredContent ?? {};
  // These two refusals are written for programs.
  if (status === "invalid_arguments") return "The bank did not understand this request.";
  if (status === "not_found") return `You have no ${NAMED[field] ?? "account"} with this number.`;
  const forPeople = (item) => item.type === "text" && forUser(item) && !item._meta?.[CHAINING];
  const items = Array.isArray(result.content) ? result.content.filter(forPeople) : [];
  const words = typeof told === "string" ? told : items.map((item) => item.text).join("\n");
  if (!field || !words.startsWith(`${field}: `)) return words;
  const plain = words.slice(field.length + 2);
  return field === "confirmationCode" ? `The code ${plain}` : plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** Return this message as paragraphs. */
function text(result) {
  const lines = message(result).split("\n").map((line) => made("p", {}, line));
  return made("div", {}, ...lines);
}

/** Return the parts of a card for a result without data: some proxies leave it out. */
function textOnly(title, result) {
  const [kind, drawn] = result.isError ? ["bad", "cross"] : ["calm", "talk"];
  return [heading(title, kind, drawn), text(result)];
}

/** Return a titled list of accounts or entries, or nothing if there are none. */
function listed(words, lines) {
  const list = made("ul", { role: "list" }, ...lines);
  return lines.length > 0 && made("section", {}, made("h2", {}, words), list);
}

/** Return one line of such a list: what it is, and an amount with a word about it. */
function line(what, amount, about) {
  const amounts = [made("strong", {}, amount), made("small", {}, about)];
  return made("li", { class: "line" }, what, amount && made("span", { class: "amounts" }, ...amounts));
}

function forUser(item) {
  const audience = item.annotations?.audience;
  return !Array.isArray(audience) || audience.includes("user");
}

/** Return a description list of the values that are present. */
function facts(lines) {
  const rows = lines
    .filter(([, value]) => value !== undefined && value !== null && value !== false)
    .map(([term, value]) => made("div", {}, made("dt", {}, term), made("dd", {}, value)));
  return made("dl", {}, ...rows);
}

function accountLine(account) {
  const kind = account.accountHolder
    ? made("span", {}, "Held by ", made("bdi", {}, account.accountHolder))
    : typeWords(account.accountType);
  return made(
    "span",
    { class: "account" },
    made("strong", {}, account.accountName),
    made("small", {}, kind, " · ", made("bdi", {}, account.accountId)),
  );
}

function typeWords(type) {
  const words = String(type ?? "account").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

// --- follow-up calls -----------------------------------------------------------------------------

/** For each tool that can be next: what it does, and what it has done. */
const STEPS = {
  request_agent_handoff: ["Speak to an agent", "A request for an agent was opened"],
  request_manager_approval: ["Ask a manager", "A manager was asked to approve"],
  record_compliance_report: ["Report the payment", "The bank's compliance desk was told"],
  prepare_money_transfer: ["Prepare it again", "It was prepared again"],
};

/** Return the follow-up calls of the chain that a proxy followed after this call. Each is a `followUp`
    of `specs/next-tool.schema.json`. It has no tool if the server does not list it. */
function followed(result) {
  const calls = result._meta?.[CHAINING]?.followUps;
  if (!Array.isArray(calls)) return [];
  return calls.map(({ tool = "a further tool", arguments: given = {}, status, isError }) => {
    return { tool, given, isDone: status === "made" && !isError, why: NOT_DONE[status] };
  });
}

/** Why the customer cannot take a follow-up call for done, by its status. */
const NOT_DONE = {
  made: "it failed",
  not_made: "it was not done",
  unknown: "it may or may not have been done",
};

/** Return the list of these calls for people, or nothing if there are none. */
function stepsTaken(words, steps) {
  const lines = steps.map(({ tool, isDone, why }) => {
    const [does, done] = STEPS[tool] ?? [`Call ${tool}`, `${tool} was called`];
    const told = isDone ? done : `${does}: ${why}`;
    return made("li", { class: isDone ? "" : "failed" }, icon(isDone ? "check" : "cross"), told);
  });
  const list = made("ol", { class: "steps", role: "list" }, ...lines);
  return steps.length > 0 && made("section", {}, made("h2", { tabindex: "-1" }, words), list);
}

/** Return the directive of a result, if there is one: nobody has followed it. */
function offered(result) {
  const next = result._meta?.nextTool;
  if (typeof next?.tool !== "string") return undefined;
  return { tool: next.tool, given: next.arguments ?? {}, title: next.title };
}

/** Return a button for an offered call. Only the customer's click makes it. */
function nextButton({ tool, given, title, words }, then) {
  const act = async () => then(tool, given, await host.call(tool, given));
  const press = button(words ?? STEPS[tool]?.[0] ?? `Go on: ${tool}`, "primary", act, "next");
  return made("div", { class: "next" }, title && made("p", { class: "quiet" }, `${title}.`), press);
}

// --- the host's context --------------------------------------------------------------------------

function applyContext(context) {
  const root = document.documentElement;
  if (context.theme === "light" || context.theme === "dark") {
    root.style.colorScheme = context.theme;
  }
  for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
    if (/^--[a-z0-9-]+$/.test(name) && typeof value === "string") root.style.setProperty(name, value);
  }
  try {
    if (context.locale) [locale] = Intl.getCanonicalLocales(context.locale);
    if (context.timeZone) {
      ({ timeZone } = new Intl.DateTimeFormat(locale, { timeZone: context.timeZone }).resolvedOptions());
    }
  } catch {
    // The browser does not know this locale or time zone, and keeps its own.
  }
}

/** Begin: pass the tool's arguments and then its result from the host to this view. */
async function begin({ waitsWith, onInput, onResult }) {
  waitingCard(waitsWith);
  host.on("ui/notifications/tool-input", (params) => onInput?.(params.arguments ?? {}));
  host.on("ui/notifications/tool-result", (params) => onResult(params));
  host.on("ui/notifications/tool-cancelled", () => {
    show(made("article", { class: "card" }, heading("This was stopped", "soft", "cross")));
  });
  host.on("ui/notifications/host-context-changed", applyContext);
  const room = new ResizeObserver(([{ target }]) => {
    host.resize(Math.ceil(target.scrollWidth), Math.ceil(target.getBoundingClientRect().height));
  });
  applyContext(await host.greet());
  room.observe(document.getElementById("view"));
}
