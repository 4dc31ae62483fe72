"""The service: projects that people label together, and a saved classifier for other programs, over HTTP.

FastAPI, uvicorn, SQLAlchemy and Alembic (extra `studio`) are imported only in this package.
"""
