"""The contrast of each text in a view with what is behind it."""

from typing import Any

CONTRAST = """root => {
  const rgba = text => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return [...numbers.slice(0, 3).map(value => value * scale), numbers[3] ?? 1];
  };
  const over = (top, under) =>
    under.map((value, at) => top[at] * top[3] + value * (1 - top[3]));
  const behind = node => node
    ? over(rgba(getComputedStyle(node).backgroundColor), behind(node.parentElement))
    : [255, 255, 255];
  const light = rgb => {
    const [r, g, b] = rgb.map(value => value / 255).map(
      value => value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const closed = root.querySelectorAll("details:not([open])");
  closed.forEach(one => { one.open = true; });
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = {};
  while (walker.nextNode()) {
    const [text, node] = [walker.currentNode.data.trim(), walker.currentNode.parentElement];
    if (!text || !node.checkVisibility()) continue;
    const under = behind(node);
    const pair = [light(over(rgba(getComputedStyle(node).color), under)), light(under)];
    const ratio = (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
    found[text] = Math.min(ratio, found[text] ?? ratio);
  }
  closed.forEach(one => { one.open = false; });
  return found;
}"""
"""The contrast ratio of each text, as WCAG counts it; what can be opened is measured too."""


def too_faint(view: Any) -> dict[str, float]:
    """Return the texts of a view whose contrast is below 4.5, and how low it is."""
    found = view.locator("main").evaluate(CONTRAST)
    assert found
    return {text: ratio for text, ratio in found.items() if ratio < 4.5}
