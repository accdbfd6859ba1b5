/* A handoff to an agent: the two ways to be connected, its reason and its reference. While it is
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

/** The beginnings of the bank's reasons, which its staff read, and the customer's words for them. */
const REASONS = {
  "Customer attempted to transfer from locked account: ": "You tried to transfer from a locked account: ",
  "Manager approval requested outside branch hours for transfer: ":
    "A manager has to approve your transfer, and the branch is closed now: ",
  "Customer asked to speak with an agent": "You asked to speak with an agent",
};

/** Return why there is a handoff. Words that are not the bank's are shown as what they are. */
function reasonLine(reason) {
  const start = Object.keys(REASONS).find((words) => reason.startsWith(words));
  if (start === undefined) return ["For the agent", reason];
  return ["Why", REASONS[start] + reason.slice(start.length)];
}

/** Return a card of the handoff in a result. It updates itself. As a part of another card, which says
    why, it does not. */
function handoffCard(result, level = "h2") {
  const card = made("section");
  let handoff = result.structuredContent;

  function draw(acted = false) {
    card.replaceChildren(...parts());
    if (acted) reach(card);
  }

  function parts() {
    const { status, choice, handoffId, reason } = handoff;
    const isTaken = status === "claimed";
    const details = facts([
      ...(level === "h1" ? [reasonLine(reason)] : []),
      ["Reference", made("code", {}, handoffId)],
      ["You chose", isTaken && WAYS[choice]?.[0]],
    ]);
    if (isTaken) return [heading("An agent has taken your request", "good", "check", level), details];
    if (!choice) {
      const ask = made("p", {}, "How would you like to be connected?");
      const ways = row(...Object.keys(WAYS).map((way) => wayButton(way, "choice")));
      return [heading("A request for an agent is open", "calm", "person", level), ask, ways, details];
    }
    const [, drawn, chosen, words] = WAYS[choice];
    const other = choice === "realtime" ? "callback" : "realtime";
    const again = button("Check again", "plain", () => look(true));
    const buttons = row(again, notAtOnce(wayButton(other, "plain", " instead")));
    return [heading(chosen, "calm", drawn, level), waiting(words), buttons, details];
  }

  function wayButton(way, kind, after = "") {
    const [words, drawn] = WAYS[way];
    return button(words + after, kind, () => choose(way), kind === "choice" && drawn);
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
      say("An agent has taken your request.");
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
