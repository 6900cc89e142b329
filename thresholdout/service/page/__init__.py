"""The pages of the service: a leaderboard of certified intervals, a team's own history, API tokens; no script."""
