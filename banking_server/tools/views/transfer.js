/* The view of `prepare_money_transfer` and of the tool that confirms: the choice of an account, the
   prepared transfer, the customer's yes or no, and the outcome. */

const PREPARE = "prepare_money_transfer";
const CONFIRM = "confirm_or_cancel_money_transfer";
const APPROVE = "request_manager_approval";

const PICKS = {
  fromAccountId: "Which account should the money come from?",
  toAccountId: "Where should the money go?",
};

/** The title, colour and drawing of each final status. */
const ENDS = {
  posted: ["Transferred", "good", "check"],
  scheduled: ["Scheduled", "good", "clock"],
  voided: ["Cancelled", "soft", "cross"],
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
/** The parts of the card about the transfer itself. Follow-up calls and offers are below them. */
let own = [];

function draw(result, acted = false, below = after(result)) {
  clearInterval(clock);
  const content = result.structuredContent ?? {};
  const data = result._meta?.[DATA] ?? {};
  if (content.transferId && content.amount !== undefined) transfer = content;
  if (data.from) names = data;
  secret = data.secret;
  own = parts(result, content, data).filter(Boolean);
  show(made("article", { class: "card" }, ...own, ...below.filter(Boolean)), acted);
}

function parts(result, content, data) {
  if (content.status === "account_needed") return picker(content, data);
  if (content.status === "wrong_code" && transfer?.status === "confirmation_needed") {
    return toConfirm(transfer, message(result));
  }
  if (content.status === "account_locked") return [heading("This account is locked", "bad", "lock"), text(result)];
  if (content.status === "pending" || content.status === "confirmation_needed") return toConfirm(content);
  if (content.amount !== undefined && content.status in ENDS) return over(result, content);
  if (content.status === "declined") return [heading("No transfer", "soft", "cross"), text(result)];
  return result.isError ? problem(result, content) : textOnly("Your transfer", result);
}

// --- the account picker --------------------------------------------------------------------------

function picker(content, data) {
  const known = new Map((data.accounts ?? []).map((account) => [account.accountId, account]));
  const options = (content.choices ?? []).map((choice) => {
    const account = known.get(choice.accountId) ?? choice;
    const beside = [
      account.isLocked && badge("Locked", "bad", "lock"),
      account.available !== undefined &&
        made("span", { class: "amount" }, money(account.available, account.currency)),
    ].filter(Boolean);
    const act = () => prepare({ [content.field]: choice.accountId });
    return made(
      "li",
      {},
      made(
        "button",
        { type: "button", class: "choice", onclick: () => busyWith(act) },
        accountLine(account),
        made("span", { class: "facts" }, ...beside),
      ),
    );
  });
  // An amount is in the currency of the account, which may have to be chosen.
  const currencies = new Set((content.choices ?? []).map(({ currency }) => currency));
  const sum = wanted.amount !== undefined && money(wanted.amount, [...currencies].join(" or "));
  return [
    heading(PICKS[content.field] ?? "Which account?", "calm", "wallet"),
    sum && made("p", { class: "quiet" }, `You want to move ${sum}.`),
    made("ul", { class: "choices", role: "list" }, ...options),
  ];
}

/** Prepare the transfer with the wishes so far and new ones. Undefined removes a wish. */
async function prepare(more) {
  const given = Object.entries({ ...wanted, ...more }).filter(([, value]) => value !== undefined);
  wanted = Object.fromEntries(given);
  draw(await host.call(PREPARE, wanted), true);
}

// --- the prepared transfer -----------------------------------------------------------------------

function movement(content) {
  const side = (label, account, id) =>
    made(
      "div",
      { class: "side" },
      made("small", {}, label),
      made("strong", {}, account?.accountName ?? id),
      account?.accountHolder
        ? made("small", {}, made("bdi", {}, account.accountHolder), " · ", made("bdi", {}, id))
        : made("small", {}, id),
    );
  return made(
    "div",
    { class: "movement", id: "movement" },
    made("p", { class: "sum" }, money(content.amount, content.currency)),
    side("From", names.from, content.fromAccountId),
    made("span", { class: "arrow" }, icon("down")),
    side("To", names.to, content.toAccountId),
  );
}

function details(content, more = []) {
  return facts([
    ["When", content.scheduledDate ? day(content.scheduledDate) : undefined],
    ["Note", content.memo],
    ...more,
    ["Reference", made("code", {}, content.transferId)],
  ]);
}

function toConfirm(content, problem) {
  const until = made("span", {}, left(content.expiresAt));
  count(content, until);
  const what = [movement(content), details(content, [["Confirm by", until]])];
  const cancel = button("Cancel transfer", "plain", () => decide("cancel"));
  if (waitsForManager(content)) {
    const words = "The money is reserved. You can confirm the transfer once a manager has approved it.";
    const waits = made("p", { class: "waits" }, made("i", { class: "dot" }), words);
    keepLooking(waits, () => lookByItself(waits));
    const again = button("Check again", "plain", lookAgain);
    const top = heading("A manager has to approve this", "wait", "clock");
    return [top, ...what, waits, made("div", { class: "row" }, again, cancel)];
  }
  const top = heading("Confirm this transfer", "calm", "check");
  const nothing = made("p", { class: "quiet" }, "Nothing is moved before you confirm it.");
  if (content.status === "confirmation_needed" && secret === undefined) {
    return [top, ...what, nothing, codeForm(problem, cancel)];
  }
  const confirm = notAtOnce(button("Confirm transfer", "primary", () => decide("confirm"), "check"));
  confirm.setAttribute("aria-describedby", "movement");
  return [top, ...what, nothing, made("div", { class: "row" }, confirm, cancel)];
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

/** Return the form for the code from the bank's desk, for a transfer without a secret. */
function codeForm(problem, cancel) {
  const field = made("input", {
    id: "code",
    inputmode: "numeric",
    autocomplete: "one-time-code",
    pattern: "[0-9]{6}",
    maxlength: "6",
    required: true,
    "aria-describedby": "code-help",
  });
  const send = async () => {
    if (field.reportValidity()) await decide("confirm", { confirmationCode: field.value });
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") busyWith(send);
  });
  // Not a form element: hosts may forbid them.
  return made(
    "div",
    { class: "code" },
    made("label", { for: "code" }, "Confirmation code"),
    field,
    made("p", { class: "quiet", id: "code-help" }, "Six digits, which the bank's desk gives you."),
    problem && made("p", { class: "problem", role: "alert" }, problem),
    made("div", { class: "row" }, button("Confirm transfer", "primary", send, "check"), cancel),
  );
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

/** Draw the transfer's current status. Below it stay the follow-up calls, the offers that are still
    possible, and what became of others: that a manager was asked, only until the manager decides. */
function drawAnew(answer, acted) {
  const { status, approval } = answer.structuredContent ?? {};
  const waits = status === "pending" && waitsForManager({ approval });
  const holds = ({ classList, dataset: { tool } }) => {
    if (answer.isError || tool === undefined) return true;
    if (classList.contains("next")) return waits && (approval === "required" || tool !== APPROVE);
    return waits || tool !== APPROVE;
  };
  const below = [...document.querySelector(".card").children].filter((part) => !own.includes(part));
  draw(answer, acted, below.filter(holds));
}

// --- the outcome ---------------------------------------------------------------------------------

function over(result, content) {
  const [title, kind, drawn] = ENDS[content.status];
  const made_at = content.postedAt ? dateAndTime(content.postedAt) : undefined;
  const moved = content.status === "posted" || content.status === "scheduled";
  const words = result.isError ? text(result) : undefined;
  const isOpen = content.status === "expired" && !offered(result) && followed(result).length === 0;
  const again = isOpen ? button("Prepare it again", "primary", prepareAgain) : undefined;
  const nothing = moved || words ? undefined : made("p", { class: "quiet" }, "No money was moved.");
  return [
    heading(title, kind, drawn),
    movement(content),
    details(content, [["Made", made_at]]),
    words,
    nothing,
    again && made("div", { class: "row" }, again),
  ];
}

/** Prepare an expired transfer again, with the same details. */
async function prepareAgain() {
  const { transferId, fromAccountId, toAccountId, amount, scheduledDate, memo } = transfer;
  const expiredTransferId = transferId;
  await prepare({ expiredTransferId, fromAccountId, toAccountId, amount, scheduledDate, memo });
}

function problem(result, content) {
  const buttons = [];
  if (transfer) {
    buttons.push(button("Look again", "primary", lookAgain));
  } else if (content.field in PICKS || (content.field === "amount" && wanted.fromAccountId)) {
    const field = content.field === "amount" ? "fromAccountId" : content.field;
    const other = () => prepare({ [field]: undefined });
    buttons.push(button("Choose another account", "primary", other));
  } else if (content.field === undefined) {
    buttons.push(button("Try again", "primary", () => prepare({})));
  }
  const unsure = transfer && result.unanswered;
  return [
    heading(unsure ? "No answer came" : "That did not work", "bad", "cross"),
    made("div", { role: "alert" }, text(result)),
    unsure && made("p", {}, "Look again to see how the transfer stands."),
    buttons.length ? made("div", { class: "row" }, ...buttons) : undefined,
  ].filter(Boolean);
}

/** Return the follow-up calls that were made, and a button for the one that was not. */
function after(result) {
  const shown = [stepsTaken(result)];
  const last = followed(result).filter(({ isDone }) => isDone).at(-1);
  if (last?.tool === "request_agent_handoff") shown.push(handoffThatFollowed(last.given));
  if (last?.tool === PREPARE) {
    const act = () => prepare(last.given);
    shown.push(made("div", { class: "row" }, button("Show the new transfer", "primary", act, "next")));
  }
  const next = offered(result);
  if (next) shown.push(nextButton(next, afterNextCall));
  return shown;
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
function afterNextCall(tool, result) {
  if (tool === PREPARE) {
    wanted = {};
    draw(result, true);
    return;
  }
  const card = document.querySelector(".card");
  const offer = card.lastElementChild;
  if (result.isError) {
    // The customer can try again: the same request twice has the effect of one.
    offer.querySelector(".problem")?.remove();
    offer.append(made("p", { class: "problem", role: "alert" }, message(result)));
    return;
  }
  offer.replaceWith(offer.querySelector(".chain"));
  if (isHandoff(result)) {
    card.append(handoffCard(result));
    reach(card.lastElementChild);
  } else {
    const title = STEPS[tool]?.[1] ?? "Done";
    const words = [made("h2", { tabindex: "-1" }, title), text(result)];
    card.append(made("section", { "data-tool": tool }, ...words));
    reach(card.lastElementChild);
  }
  card.append(...after(result).filter(Boolean));
}

// -------------------------------------------------------------------------------------------------

begin({
  waiting: "Preparing your transfer …",
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
