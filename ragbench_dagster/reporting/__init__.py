"""Verdicts to decisions: summary, gate, leaderboard, report, tracking."""
