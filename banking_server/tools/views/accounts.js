/* The view of `list_accounts`: balances, locks, and what each account can be used for. */

function accountInList(account) {
  const { available, posted, reserved, currency, canTransferFrom, isLocked } = account;
  const use = limits(account);
  const badges = [isLocked && badge("Locked", "bad", "lock"), use && badge(use, "soft")];
  const what = accountLine(account);
  if (badges.some(Boolean)) what.append(made("span", { class: "badges" }, ...badges));
  if (available === undefined) return line(what);
  // Only money that can be moved is "available".
  const isMovable = canTransferFrom && !isLocked;
  const kind = isMovable ? "available" : "balance";
  const about = reserved > 0 ? `${kind}, ${money(reserved, currency)} reserved` : kind;
  return line(what, money(isMovable ? available : posted, currency), about);
}

/** Return what a customer's own account cannot be used for. */
function limits({ available, canTransferFrom, canTransferTo }) {
  if (available === undefined || (canTransferFrom && canTransferTo)) return undefined;
  if (canTransferFrom) return "Sends only";
  return canTransferTo ? "Receives only" : "No transfers";
}

/** Return the customer's own accounts, and then the payees, which have no amounts. */
function lists(accounts) {
  const isOwn = ({ available }) => available !== undefined;
  const own = accounts.filter(isOwn).map(accountInList);
  const payees = accounts.filter((account) => !isOwn(account)).map(accountInList);
  return [heading("Your accounts", "calm", "wallet"), listed("Accounts", own), listed("Payees", payees)];
}

function draw(result, acted = false) {
  const accounts = result.structuredContent?.accounts;
  const isListed = !result.isError && Array.isArray(accounts) && accounts.length > 0;
  const [top, ...rest] = isListed ? lists(accounts) : textOnly("Your accounts", result);
  top.append(button("Refresh", "plain", async () => draw(await host.call("list_accounts", {}), true)));
  show(made("article", { class: "card" }, top, ...rest), acted);
}

begin({ waitsWith: "Looking up your accounts …", onResult: draw });
