/* The view of `prepare_money_transfer` and of the tool that confirms: the choice of an account, the
   prepared transfer, the customer's yes or no, and the outcome. */

const PREPARE = "prepare_money_transfer";
const CONFIRM = "confirm_or_cancel_money_transfer";
const APPROVE = "request_manager_approval";

const PICKS = {
  fromAccountId: "Which account should the money come from?",
  toAccountId: "Where should the money go?",
};

/** The other wishes, which the customer can change after a refusal. */
const CHANGES = {
  amount: { label: "Another amount", type: "number", min: "0.01", step: "0.01" },
  scheduledDate: { label: "Another date", type: "date" },
  memo: { label: "Another note", maxlength: "140" },
};

/** The title, colour and drawing of each final status. */
const ENDS = {
  posted: ["Transferred", "good", "check"],
  scheduled: ["Scheduled", "good", "clock"],
  voided: ["Cancelled", "soft", "cross"],
  refused: ["A manager did not approve this", "bad", "cross"],
  expired: ["Not confirmed in time", "soft", "clock"],
  failed: ["Not transferred", "bad", "cross"],
};

/** The customer's wishes so far, as arguments of `prepare_money_transfer`. */
let wanted = {};
/** The transfer that was shown last, the names of its accounts, and the secret that confirms it. */
let transfer;
let names = {};
let secret;
let clock;
/** The card: what it shows above and below the customer's next choice; this choice, which is an open
    handoff or an offered follow-up call; and the follow-up calls that were made. */
let above = [];
let below = [];
let handoff;
let offer;
let steps = [];
let stepsTitle;

function draw(result, acted = false) {
  drawTransfer(result);
  steps = followed(result);
  stepsTitle = "Done automatically";
  const last = steps.filter(({ isDone }) => isDone).at(-1);
  handoff = last?.tool === "request_agent_handoff" && handoffThatFollowed(last.given);
  offer = offered(result);
  if (last?.tool === PREPARE) {
    offer ??= { tool: PREPARE, given: last.given, words: "Show the new transfer" };
  } else if (result.structuredContent?.status === "expired") {
    offer ??= again(result.structuredContent);
  }
  arrange(acted);
}

function drawTransfer(result) {
  clearInterval(clock);
  const content = result.structuredContent ?? {};
  const data = result._meta?.[DATA] ?? {};
  if (content.transferId && content.amount !== undefined) transfer = content;
  if (data.from) names = data;
  secret = data.secret;
  [above, below = []] = parts(result, content, data);
}

/** Show the parts of the card: the customer's next choice is never below what was done. */
function arrange(acted) {
  const choice = [handoff, offer && nextButton(offer, afterNextCall)];
  const taken = stepsTaken(stepsTitle, steps);
  show(made("article", { class: "card" }, ...above, ...choice, ...below, taken), acted);
}

function parts(result, content, data) {
  if (content.status === "account_needed") return [picker(content, data)];
  if (content.status === "wrong_code" && transfer?.status === "confirmation_needed") {
    return toConfirm(transfer, message(result));
  }
  if (content.status === "account_locked") {
    return [[heading("This account is locked", "bad", "lock"), text(result)]];
  }
  if (content.status === "pending" || content.status === "confirmation_needed") return toConfirm(content);
  if (content.amount !== undefined && content.status in ENDS) return over(content);
  if (content.status === "declined") return [[heading("No transfer", "soft", "cross"), text(result)]];
  return [result.isError ? problem(result, content) : textOnly("Your transfer", result)];
}

// --- the account picker --------------------------------------------------------------------------

function picker(content, data) {
  const known = new Map((data.accounts ?? []).map((account) => [account.accountId, account]));
  const choices = content.choices ?? [];
  const locked = content.field === "fromAccountId" ? "bad" : "soft";
  const options = choices.map((choice) => {
    const account = known.get(choice.accountId) ?? choice;
    const beside = made(
      "span",
      { class: "amounts" },
      account.isLocked && badge("Locked", locked, "lock"),
      account.available !== undefined && made("span", {}, money(account.available, account.currency)),
    );
    const act = () => prepare({ [content.field]: choice.accountId });
    const members = { type: "button", class: "choice", onclick: () => busyWith(act) };
    return made("li", {}, made("button", members, accountLine(account), beside));
  });
  return [
    heading(PICKS[content.field] ?? "Which account?", "calm", "wallet"),
    wanted.amount !== undefined &&
      made("p", { class: "quiet" }, `You want to move ${sum(wanted.amount, choices)}.`),
    made("ul", { class: "choices", role: "list" }, ...options),
  ];
}

/** Return the amount with its currency. It is that of the account, which may have to be chosen. */
function sum(amount, choices) {
  const [currency, ...others] = new Set(choices.map((choice) => choice.currency));
  if (others.length === 0) return money(amount, currency);
  return `${money(amount, "").trim()}, in the account's currency`;
}

/** Prepare the transfer with the wishes so far and new ones. Undefined removes a wish. */
async function prepare(more) {
  const given = Object.entries({ ...wanted, ...more }).filter(([, value]) => value !== undefined);
  wanted = Object.fromEntries(given);
  draw(await host.call(PREPARE, wanted), true);
}

// --- the prepared transfer -----------------------------------------------------------------------

function movement(content) {
  const side = (account, id) => {
    const holder = account?.accountHolder && made("bdi", {}, account.accountHolder);
    const number = made("small", {}, holder, holder && " · ", made("bdi", {}, id));
    return made("span", { class: "account" }, made("strong", {}, account?.accountName ?? id), number);
  };
  return made(
    "div",
    { class: "movement", id: "movement" },
    made("p", { class: "sum" }, money(content.amount, content.currency)),
    facts([
      ["From", side(names.from, content.fromAccountId)],
      ["To", side(names.to, content.toAccountId)],
      ["When", content.scheduledDate && day(content.scheduledDate)],
      ["Note", content.memo],
    ]),
  );
}

function reference(content, ...more) {
  return facts([...more, ["Reference", made("code", {}, content.transferId)]]);
}

function toConfirm(content, problem) {
  const until = made("span", {}, left(content.expiresAt));
  count(content, until);
  const details = reference(content, ["Confirm by", until]);
  const cancel = button("Cancel transfer", "plain", () => decide("cancel"));
  if (waitsForManager(content)) {
    const words = "The money is reserved. You can confirm the transfer once a manager has approved it.";
    const waits = waiting(words);
    keepLooking(waits, () => lookByItself(waits));
    const top = heading("A manager has to approve this", "wait", "clock");
    const check = button("Check again", "plain", lookAgain);
    return [[top, movement(content)], [made("section", {}, waits, row(check, cancel), details)]];
  }
  const top = [heading("Confirm this transfer", "calm", "check"), movement(content)];
  if (content.status === "confirmation_needed" && secret === undefined) {
    const help = "Six digits, which the bank's desk gives you.";
    const send = (confirmationCode) => decide("confirm", { confirmationCode });
    const code = { inputmode: "numeric", autocomplete: "one-time-code", pattern: "[0-9]{6}", maxlength: "6" };
    const members = { label: "Confirmation code", help, problem, words: "Confirm transfer", send, ...code };
    return [[...top, entry({ ...members, others: [cancel] })], [details]];
  }
  const confirm = notAtOnce(button("Confirm transfer", "primary", () => decide("confirm")));
  confirm.setAttribute("aria-describedby", "movement");
  const nothing = made("p", { class: "quiet" }, "Nothing is moved before you confirm it.");
  return [[...top, nothing, row(confirm, cancel)], [details]];
}

function waitsForManager({ approval }) {
  return approval === "required" || approval === "requested";
}

/** Look at the transfer without the customer's click: show changes only, and keep the focus. Return
    whether to look again. */
async function lookByItself(shown) {
  const answer = await host.call("look_at_transfer", { transferId: transfer.transferId });
  if (!shown.isConnected) return false;
  const content = answer.structuredContent ?? {};
  const isChanged =
    content.status !== transfer.status || waitsForManager(content) !== waitsForManager(transfer);
  const isSame = !isChanged && answer._meta?.[DATA]?.secret === secret;
  if (answer.isError || isSame || isBusy()) return true;
  drawAnew(answer, document.querySelector(".card").contains(document.activeElement));
  if (!isChanged) return false;
  const hasExpired = content.status === "expired" && "This has expired. You can prepare it again.";
  say(hasExpired || (content.approval === "granted" ? "A manager has approved this." : "This has changed."));
  return false;
}

/** Return when the transfer expires, as text. */
function left(expiresAt) {
  const minutes = Math.ceil((new Date(expiresAt) - Date.now()) / 60_000);
  const at = dateAndTime(expiresAt);
  if (minutes > 90 || minutes < 1) return at;
  return minutes > 1 ? `${at} (in ${minutes} minutes)` : `${at} (in less than a minute)`;
}

/** Update the time that is left, and ask the bank once when it is over. */
function count(content, until) {
  const isOver = () => new Date(content.expiresAt) <= Date.now();
  // The clock of this computer may be wrong: the bank's status decides.
  if (isOver()) return;
  clock = setInterval(() => {
    until.textContent = left(content.expiresAt);
    if (!isOver()) return;
    clearInterval(clock);
    lookByItself(until);
  }, 15_000);
}

async function decide(action, more = {}) {
  const { transferId } = transfer;
  const answer =
    action === "confirm" && secret !== undefined
      ? await host.call("confirm_in_view", { transferId, secret })
      : await host.call(CONFIRM, { transferId, action, ...more });
  const unsure = answer.unanswered ? " Whether it was done is not known." : "";
  host.mention(`In the card of the transfer the customer chose to ${action} it. ${message(answer)}${unsure}`);
  draw(answer, true);
}

async function lookAgain() {
  drawAnew(await host.call("look_at_transfer", { transferId: transfer.transferId }), true);
}

/** Draw the transfer's current status. An open handoff stays, and so do offers that are still
    possible. That a manager was asked is shown only until the manager decides. */
function drawAnew(answer, acted) {
  const { status, approval } = answer.structuredContent ?? {};
  drawTransfer(answer);
  if (!answer.isError) {
    const waits = status === "pending" && waitsForManager({ approval });
    if (!waits || (approval === "requested" && offer?.tool === APPROVE)) offer = undefined;
    if (!waits) steps = steps.filter(({ tool }) => tool !== APPROVE);
    if (status === "expired") offer = again(transfer);
  }
  arrange(acted);
}

// --- the outcome ---------------------------------------------------------------------------------

function over(content) {
  const { status, approval, postedAt } = content;
  const end = heading(...ENDS[status === "voided" && approval === "refused" ? approval : status]);
  const isMoved = status === "posted" || status === "scheduled";
  const nothing = !isMoved && made("p", { class: "quiet" }, "No money was moved.");
  const details = reference(content, ["Made", postedAt && dateAndTime(postedAt)]);
  return [[end, movement(content), nothing], [details]];
}

/** Return the offer to prepare an expired transfer again, with the same details. */
function again({ transferId, fromAccountId, toAccountId, amount, scheduledDate, memo }) {
  const details = { fromAccountId, toAccountId, amount, scheduledDate, memo };
  return { tool: PREPARE, given: { expiredTransferId: transferId, ...details } };
}

function problem(result, { field, status }) {
  const unsure = transfer && result.unanswered;
  const top = heading(unsure ? "No answer came" : "That did not work", "bad", "cross");
  const told = made("div", { role: "alert" }, text(result));
  if (transfer) {
    const look = unsure && made("p", {}, "Look again to see how the transfer stands.");
    return [top, told, look, row(button("Look again", "primary", lookAgain))];
  }
  const other = (name, kind) =>
    button("Choose another account", kind, () => prepare({ [name]: undefined }));
  if (field in PICKS) return [top, told, row(other(field, "primary"))];
  if (field === undefined) return [top, told, row(button("Try again", "primary", () => prepare({})))];
  if (!(field in CHANGES)) return [top, told];
  const send = (value) => prepare({ [field]: field === "amount" ? Number(value) : value });
  const others = field === "amount" && status === "refused" && wanted.fromAccountId;
  const members = { words: "Continue", send, others: others ? [other("fromAccountId", "plain")] : [] };
  return [top, told, entry({ ...CHANGES[field], ...members })];
}

/** Return the handoff that a follow-up call opened. It is only looked up, not changed. */
function handoffThatFollowed({ reason }) {
  const place = made("div", {});
  host.call("look_at_handoff", reason === undefined ? {} : { reason }).then((answer) => {
    if (isHandoff(answer)) place.append(handoffCard(answer));
  });
  return place;
}

/** Show the result of the follow-up call that the customer started. */
function afterNextCall(tool, given, result) {
  if (tool === PREPARE) {
    wanted = given;
    transfer = undefined;
    draw(result, true);
    return;
  }
  if (result.isError) {
    // The customer can try again: the same request twice has the effect of one.
    const next = document.querySelector(".next");
    next.querySelector(".problem")?.remove();
    next.append(made("p", { class: "problem", role: "alert" }, message(result)));
    return;
  }
  steps = [...steps, { tool, isDone: true }, ...followed(result)];
  stepsTitle = "Done";
  offer = offered(result);
  if (isHandoff(result)) handoff = handoffCard(result);
  arrange(false);
  reach(isHandoff(result) ? handoff : document.querySelector(".steps").parentElement);
}

// -------------------------------------------------------------------------------------------------

begin({
  waitsWith: "Preparing your transfer …",
  onInput(given) {
    // The tool that confirms gets the id of an existing transfer.
    if (given.transferId) transfer = { transferId: given.transferId };
    else wanted = { ...given };
  },
  onResult(result) {
    draw(result);
    const { status, createdAt } = result.structuredContent ?? {};
    // A host may show an old result again: then the bank is asked for the current status.
    if (status === "pending" && Date.now() - new Date(createdAt) > 60_000) {
      lookByItself(document.querySelector(".card"));
    }
  },
});
