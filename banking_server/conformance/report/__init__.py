"""What came of a run: judgements, the verdict, and the forms in which both are told."""
