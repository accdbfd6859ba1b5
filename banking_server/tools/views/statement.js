/* The view of `get_account_statement`: what came in and went out, and the entries. */

/** The arguments of the call, which the older pages need too. */
let asked = {};
/** The first page of the statement, all entries that are known, and how many of them are shown. */
let first;
let entries = [];
let shown = 0;
let cursor;

const AT_ONCE = 10;

function draw(result, acted = false) {
  const content = result.structuredContent ?? {};
  if (result.isError || !Array.isArray(content.entries)) {
    show(made("article", { class: "card" }, ...textOnly("Your statement", result)), acted);
    return;
  }
  first ??= content;
  entries = [...entries, ...content.entries];
  cursor = content.nextCursor;
  showMore(acted);
}

/** Show some more entries, and read the next page if all are shown. */
async function showMore(acted) {
  shown = Math.min(shown + AT_ONCE, entries.length);
  const { accountName, accountId, since, until, currency, totalCredits, totalDebits, totalSpent } = first;
  const sum = (amount) => amount !== undefined && money(amount, currency);
  const older = async () => {
    if (shown < entries.length) showMore(true);
    else draw(await host.call("get_account_statement", { ...asked, cursor }), true);
  };
  const isAll = shown === entries.length && cursor === undefined;
  show(
    made(
      "article",
      { class: "card" },
      heading(accountName, "calm", "list"),
      facts([
        ["Account", made("bdi", {}, accountId)],
        ["Period", since === until ? day(since) : `${day(since)} to ${day(until)}`],
        ["Came in", sum(totalCredits)],
        [totalSpent === undefined ? "Went out" : "Spent", sum(totalSpent ?? totalDebits)],
        ["To your own accounts", totalSpent < totalDebits && sum(totalDebits - totalSpent)],
      ]),
      entries.length === 0 && made("p", { class: "quiet" }, "There are no entries in these days."),
      listed("Entries", entries.slice(0, shown).map(entryInList)),
      !isAll && row(button("Show older entries", "plain", older)),
    ),
    acted,
  );
}

function entryInList({ postedAt, description, counterparty, amount, balance }) {
  const about = [time(postedAt, { dateStyle: "medium" }), counterparty].filter(Boolean).join(" · ");
  const what = made("span", { class: "account" }, made("strong", {}, description), made("small", {}, about));
  const sign = amount > 0 ? "+" : "";
  return line(what, sign + money(amount, first.currency), `balance ${money(balance, first.currency)}`);
}

begin({
  waitsWith: "Looking up your statement …",
  onInput(given) {
    asked = given;
  },
  onResult(result) {
    [first, entries, shown] = [undefined, [], 0];
    draw(result);
  },
});
