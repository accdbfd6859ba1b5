"""A small conforming client of the tests' own: the least one, and every SHOULD.

It prints all that a client may show the suite.
"""

import json
import uuid

from jsonschema import Draft202012Validator

from .host import ID
from .least_client import LeastClient


class SmallClient(LeastClient):
    chain = previous = None
    """The id of the chain, and the tool of its last call."""

    def settings(self):
        return {"version": 1}

    def capabilities(self, method):
        return {**super().capabilities(method), "extensions": {ID: self.settings()}}

    def follow(self, tool, arguments):
        self.chain, self.previous = self.chain_id(), None
        super().follow(tool, arguments)

    def chain_id(self):
        return str(uuid.uuid4())

    def meta(self):
        return {ID: self.provenance(self.chain, len(self.calls), self.previous)}

    def provenance(self, chain, level, previous):
        shown = {"chainId": chain, "level": level}
        return shown if previous is None else {**shown, "previousTool": previous}

    def trusts_server(self):
        return self.advertises() or "addedStep" in self.context

    def next_step(self, tool, result):
        self.previous = tool
        # What else a server sends under that name is no directive.
        if not self.advertises():
            return self.added(tool)
        is_directed = "nextTool" in (result.get("_meta") or {})
        return super().next_step(tool, result) or (None if is_directed else self.added(tool))

    def added(self, tool):
        """Return the step that the user's rule adds, or None."""
        step = self.context.get("addedStep")
        known = step is not None and step["after"] == tool
        return (step["tool"], step.get("arguments", {})) if known else None

    def fits(self, schema, arguments):
        return Draft202012Validator(schema).is_valid(arguments)

    def run(self):
        if "otherServerUrl" in self.context:
            self.other = type(self)(self.context["otherServerUrl"], self.era, self.context)
            self.other.connect()
        return super().run()

    def printed(self):
        meta = self.handed_on_meta() if self.results else {}
        names = ("tool", "status")
        return {
            "isError": False,
            **super().printed(),
            "_meta": meta,
            "outcome": self.outcome,
            "followUps": [{name: told[name] for name in names} for told in self.told],
        }

    def handed_on_meta(self):
        """Return the `_meta` of the merged result."""
        meta = dict(self.results[0].get("_meta") or {})
        if self.trusts_server():
            meta.pop("nextTool", None)
        return meta

    def lines(self, printed):
        """Return the lines of the output."""
        return ["Done.", json.dumps(printed, ensure_ascii=False)]

    def output(self, printed):
        return "".join(f"{line}\n" for line in self.lines(printed))
