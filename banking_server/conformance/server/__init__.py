"""Judging a server: play its scenarios, and look at every message it sends."""
