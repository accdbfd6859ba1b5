/* The view of `request_agent_handoff`. */

begin({
  waitsWith: "Asking for an agent …",
  onResult(result) {
    const card = made("article", { class: "card" });
    if (isHandoff(result)) card.append(handoffCard(result, "h1"));
    else card.append(...textOnly(result.isError ? "No agent was asked" : "Your handoff", result));
    show(card);
  },
});
