/* The view of `list_accounts`: balances, locks, and what each account can be used for. */

function row(account) {
  const use = limits(account);
  const badges = [
    account.isLocked && badge("Locked", "bad", "lock"),
    use && badge(use, "soft"),
  ].filter(Boolean);
  const name = accountLine(account);
  if (badges.length > 0) name.append(made("span", { class: "badges" }, ...badges));
  return made("li", { class: "line" }, name, amounts(account));
}

/** Return the amounts of a customer's own account. Only money that can be moved is "available". */
function amounts({ available, posted, reserved, currency, canTransferFrom, isLocked }) {
  if (available === undefined) return undefined;
  const isMovable = canTransferFrom && !isLocked;
  const amount = money(isMovable ? available : posted, currency);
  const kind = isMovable ? "available" : "balance";
  const words = reserved > 0 ? `${kind}, ${money(reserved, currency)} reserved` : kind;
  return made("span", { class: "amounts" }, made("strong", {}, amount), made("small", {}, words));
}

/** Return what a customer's own account cannot be used for. */
function limits({ available, canTransferFrom, canTransferTo }) {
  if (available === undefined || (canTransferFrom && canTransferTo)) return undefined;
  if (canTransferFrom) return "Sends only";
  return canTransferTo ? "Receives only" : "No transfers";
}

function group(words, accounts) {
  if (accounts.length === 0) return undefined;
  return made(
    "section",
    {},
    made("h2", {}, words),
    made("ul", { class: "lines", role: "list" }, ...accounts.map(row)),
  );
}

function totals(accounts) {
  const sums = new Map();
  for (const { posted, currency } of accounts) {
    sums.set(currency, (sums.get(currency) ?? 0) + Math.round(posted * 100));
  }
  return [...sums].map(([currency, sum]) => made("span", {}, money(sum / 100, currency)));
}

function draw(result, acted = false) {
  const accounts = result.structuredContent?.accounts;
  const anew = async () => draw(await host.call("list_accounts", {}), true);
  const refresh = button("Refresh", "plain", anew);
  if (result.isError || !Array.isArray(accounts)) {
    const [top, words] = textOnly("Your accounts", result);
    top.append(refresh);
    show(made("article", { class: "card" }, top, words), acted);
    return;
  }
  const own = accounts.filter((account) => account.available !== undefined);
  const payees = accounts.filter((account) => account.available === undefined);
  const top = heading("Your accounts", "calm", "wallet");
  top.append(refresh);
  const label = made("small", {}, "Total balance");
  const sum = own.length ? made("p", { class: "sum all" }, label, ...totals(own)) : undefined;
  const none = accounts.length ? undefined : made("p", {}, message(result));
  show(
    made("article", { class: "card" }, top, sum, none, group("Accounts", own), group("Payees", payees)),
    acted,
  );
}

begin({ waiting: "Looking up your accounts …", onResult: draw });
