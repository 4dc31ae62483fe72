"""Files in and out: imports, exports, backups, models and answers to uploaded files."""
