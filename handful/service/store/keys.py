"""API keys: shown once, stored as a digest."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import Any

from sqlalchemy import Connection, insert, select, update

from ...errors import DataError
from .names import Role
from .tables import KEYS

PREFIX = "handful"


def add_key(connection: Connection, account: str, role: Role) -> str:
    """A new key of an account: `handful_ID_SECRET`, which is not stored and cannot be shown again."""
    name, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    values = {"id": name, "account": account, "role": role, "digest": _digest(secret), "created": time.time()}
    connection.execute(insert(KEYS).values(**values))
    return f"{PREFIX}_{name}_{secret}"


def list_keys(connection: Connection) -> list[Any]:
    """All keys, the oldest first, without their secrets."""
    return list(connection.execute(select(KEYS).order_by(KEYS.c.created)))


def revoke_key(connection: Connection, name: str) -> None:
    """Make a key useless."""
    query = update(KEYS).where(KEYS.c.id == name, KEYS.c.revoked.is_(None)).values(revoked=time.time())
    if not connection.execute(query).rowcount:
        raise DataError(f"There is no key {name!r} to revoke: see handful keys list.")


def find_key(connection: Connection, key: str) -> Any | None:
    """The row of a valid key; the secret is compared in constant time."""
    parts = key.split("_", 2)
    if len(parts) != 3 or parts[0] != PREFIX:
        return None
    row = connection.execute(select(KEYS).where(KEYS.c.id == parts[1])).first()
    expected = row.digest if row else _digest("")
    right = hmac.compare_digest(expected, _digest(parts[2]))
    return row if row is not None and right and row.revoked is None else None


def has_keys(connection: Connection) -> bool:
    """Whether there is a key that can be used."""
    return connection.execute(select(KEYS.c.id).where(KEYS.c.revoked.is_(None)).limit(1)).first() is not None


def _digest(secret: str) -> str:
    """A plain hash is enough: the secret has 256 random bits, so nobody can try them all."""
    return hashlib.sha256(secret.encode()).hexdigest()
