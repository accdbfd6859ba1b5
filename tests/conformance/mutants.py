"""What mutants are called in `specs/conformance/mutants.yaml`."""

import re


def by_name(module, kind):
    """Return the mutants of a module: its classes of a kind, `ReadsNoAlias` as `reads-no-alias`.

    A class whose name begins with `_` is no mutant, and the base of some.
    """
    return {
        re.sub(r"(?<!^)(?=[A-Z0-9])", "-", name).lower(): member
        for name, member in module.items()
        if isinstance(member, type)
        and issubclass(member, kind)
        and member.__module__ == module["__name__"]
        and not name.startswith("_")
    }
