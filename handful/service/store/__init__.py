"""The store: projects, classes, texts, labels and jobs in SQLite or PostgreSQL.

Functions take an open connection; `Database.reading` and `Database.writing` give one. A transaction that writes to a project
begins with `lock_project`, so that writers of one project take turns.
"""
