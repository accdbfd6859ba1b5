/* A handoff to an agent: its reason, its reference, and the two ways to be connected. While it is
   visible, it regularly looks whether an agent has taken the handoff. */

/** For each way: its button, its drawing, and the title and the words after the choice. */
const WAYS = {
  realtime: [
    "Speak to an agent now",
    "talk",
    "You are in the queue",
    "An agent will speak with you as soon as one is free.",
  ],
  callback: ["Be called back", "phone", "Callback requested", "An agent will call you back."],
};

/** Return a card of the handoff in a result. It updates itself. */
function handoffCard(result, heading = "h2") {
  const card = made("section", { class: "handoff" });
  let handoff = result.structuredContent;

  function draw(acted = false) {
    card.replaceChildren(...parts());
    if (acted) reach(card);
  }

  function parts() {
    const shown = facts([
      ["Why", handoff.reason],
      ["Reference", made("code", {}, handoff.handoffId)],
    ]);
    if (handoff.status === "claimed") {
      const how = WAYS[handoff.choice]?.[0];
      if (how) shown.append(...facts([["You chose", how]]).children);
      return [title("An agent has taken it", "good", "check"), shown];
    }
    if (!handoff.choice) {
      const ask = made("p", {}, "How would you like to be connected?");
      const buttons = Object.keys(WAYS).map((way) => wayButton(way, "choice"));
      const both = made("div", { class: "row" }, ...buttons);
      return [title("An agent can help you", "calm", "person"), shown, ask, both];
    }
    const [, drawn, chosen, words] = WAYS[handoff.choice];
    const other = handoff.choice === "realtime" ? "callback" : "realtime";
    const waits = made("p", { class: "waits" }, made("i", { class: "dot" }), words);
    const again = button("Check again", "plain", () => look(true));
    return [
      title(chosen, "calm", drawn),
      shown,
      waits,
      made("div", { class: "row" }, again, notAtOnce(wayButton(other, "plain", " instead"))),
    ];
  }

  function title(words, kind, drawn) {
    const mark = made("span", { class: `mark ${kind}` }, icon(drawn));
    return made("header", {}, mark, made(heading, { tabindex: "-1" }, words));
  }

  function wayButton(way, kind, after = "") {
    const [words, drawn] = WAYS[way];
    return button(words + after, kind, () => choose(way), kind === "choice" ? drawn : undefined);
  }

  async function choose(choice) {
    const given = { handoffId: handoff.handoffId, choice };
    const answer = await host.call("process_agent_handoff_choice", given);
    if (isHandoff(answer)) {
      handoff = answer.structuredContent;
      host.mention(message(answer));
      draw(true);
    } else {
      problem(answer);
      // An agent may have taken it meanwhile.
      await look();
    }
  }

  function problem(answer) {
    card.querySelector(".problem")?.remove();
    card.append(made("p", { class: "problem", role: "alert" }, message(answer)));
  }

  /** Look at the current status, and return whether it can still change. If the customer asked for it,
      the card is drawn again even without a change. */
  async function look(isAsked = false) {
    const answer = await host.call("look_at_handoff", { handoffId: handoff.handoffId });
    if (!isHandoff(answer)) {
      if (isAsked) problem(answer);
      return true;
    }
    const before = handoff;
    handoff = answer.structuredContent;
    const isTaken = handoff.status === "claimed";
    const isSame = before.status === handoff.status && before.choice === handoff.choice;
    if (isSame && !isAsked) return !isTaken;
    draw(isAsked || card.contains(document.activeElement));
    if (isTaken) {
      say("An agent has taken it.");
      host.mention(message(answer));
    }
    return !isTaken;
  }

  keepLooking(card, look);
  draw();
  return card;
}

function isHandoff(result) {
  return !result.isError && typeof result.structuredContent?.handoffId === "string";
}
