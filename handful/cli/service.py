"""The service: the studio, a saved classifier for programs, and API keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import Command, Commands, options_of, print_table, say

folder_argument = click.argument("folder", required=False, type=click.Path(path_type=Path))
database_option = click.option(
    "--database", envvar="HANDFUL_DATABASE", help="Address of a PostgreSQL database (postgresql://…), not an SQLite file."
)
address_options = options_of(
    click.option("--host", default="127.0.0.1", envvar="HANDFUL_HOST", help="Address to listen on."),
    click.option("--port", default=8000, envvar="HANDFUL_PORT", help="Port to listen on; 0 for a free one."),
    click.option("--root-path", default="", envvar="HANDFUL_ROOT_PATH", help="Path under which a proxy publishes it."),
    click.option(
        "--allow-host", "hosts", multiple=True, envvar="HANDFUL_ALLOW_HOST", help="Name under which it is reached; repeatable."
    ),
    click.option(
        "--allow-origin", "origins", multiple=True, envvar="HANDFUL_ALLOW_ORIGIN", help="Page that may call it; repeatable."
    ),
    click.option("--token", envvar="HANDFUL_TOKEN", help="Token for this machine; by default one is made."),
)


def _settings(folder: Path | None, **given: Any) -> Any:
    """Settings from options; without the extra, a hint."""
    from ..errors import MissingExtraError

    try:
        from ..service.settings import Limits, ServiceSettings, default_folder
        from ..service.store import database  # noqa: F401 - the extra is there
    except ImportError as error:
        if isinstance(error, MissingExtraError):
            raise
        raise MissingExtraError("The service", "studio") from error
    return ServiceSettings(folder or default_folder(), limits=Limits.from_environment(), **given)


@click.command(cls=Command)
@folder_argument
@database_option
@address_options
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option("--example", is_flag=True, help="Open the example project.")
def studio(folder: Path | None, no_browser: bool, example: bool, **given: Any) -> None:
    """Label texts and watch the classifier learn, in a browser.

    Projects are kept in FOLDER, by default in the user's data directory.

    \b
    handful studio
    handful studio projects --port 8080 --no-browser
    """
    settings = _settings(folder, **given)
    from ..service.server import run_studio

    run_studio(settings, say, not no_browser, example)


@click.command(cls=Command)
@click.argument("model", type=click.Path(path_type=Path))
@address_options
@click.option("--vectors", help="The file of word vectors, if it was fitted with one.")
@click.option(
    "--learn/--no-learn", default=True, help="Learn from Label Studio's annotations, kept in a file next to the model."
)
@click.option("--new", is_flag=True, help="Begin without a model if there is none: Label Studio's annotations teach it.")
@click.option("--open", "open_to_all", is_flag=True, help="Ask for no token; only on this machine.")
@click.option("--folder", type=click.Path(path_type=Path), help="Folder with the API keys; by default that of the studio.")
@database_option
def serve(model: Path, folder: Path | None, vectors: str | None, learn: bool, new: bool, **given: Any) -> None:
    """Serve a saved classifier to other programs.

    It speaks the protocols of Hugging Face, Text Embeddings Inference, Label Studio's ML backend and KServe.

    \b
    handful serve triage --port 8000
    handful serve triage --host 0.0.0.0 --allow-host models.example.org
    """
    settings = _settings(folder, **given)
    from ..service.server import run_serving

    run_serving(model, settings, say, vectors, learn, new)


@click.group(cls=Commands)
def keys() -> None:
    """Add, list or revoke API keys, which let others use the studio or a served classifier."""


@keys.command()
@click.argument("account")
@click.option(
    "--role",
    default="label",
    type=click.Choice(["read", "label", "admin"]),
    help="Role of the key: each may do what the one before it may.",
)
@click.option("--folder", type=click.Path(path_type=Path), help="Folder of the projects.")
@database_option
def add(account: str, role: Any, folder: Path | None, database: str | None) -> None:
    """Make a key for an account and print it: it is not stored and cannot be shown again.

    \b
    handful keys add anna --role admin
    """
    from ..errors import SettingError

    with _store(folder, database) as connection:
        from ..service.store.keys import add_key

        if not account.strip() or len(account) > 200:
            raise SettingError("The account must have a name of at most 200 characters.")
        click.echo(add_key(connection, account.strip(), role))


@keys.command("list")
@click.option("--folder", type=click.Path(path_type=Path), help="Folder of the projects.")
@database_option
def list_(folder: Path | None, database: str | None) -> None:
    """Show the keys, without their secrets.

    \b
    handful keys list
    """
    import time

    with _store(folder, database) as connection:
        from ..service.store.keys import list_keys

        found = list_keys(connection)
    if not found:
        say("There are no keys: add one with handful keys add.")
        return
    made = [time.strftime("%Y-%m-%d %H:%M", time.gmtime(row.created)) for row in found]
    rows = [
        (row.id, row.account, row.role, date, "revoked" if row.revoked else "") for row, date in zip(found, made, strict=True)
    ]
    print_table(("key", "account", "role", "made", ""), rows)


@keys.command()
@click.argument("key")
@click.option("--folder", type=click.Path(path_type=Path), help="Folder of the projects.")
@database_option
def revoke(key: str, folder: Path | None, database: str | None) -> None:
    """Make a key useless, by its id in the list or by the key itself.

    \b
    handful keys revoke 5f0c1d2e
    """
    with _store(folder, database) as connection:
        from ..service.store.keys import revoke_key

        revoke_key(connection, key.split("_")[1] if key.count("_") > 1 else key)
    say("The key no longer works.")


def _store(folder: Path | None, database: str | None) -> Any:
    """A transaction in the store."""
    settings = _settings(folder, database=database)
    from ..service.store.database import Database

    settings.folder.mkdir(parents=True, exist_ok=True)
    store = Database(settings.url)
    store.prepare()
    return store.writing()
