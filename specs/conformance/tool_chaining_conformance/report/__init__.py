"""The report on a run: judgements, the verdict, and its forms (console, JSON, JUnit)."""
