"""The routes of the studio's API, under /api/v1."""
