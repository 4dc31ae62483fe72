"""Files in and out, and jobs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from sqlalchemy import Connection
from starlette.background import BackgroundTask

from ..context import Context, Service, Someone
from ..errors import InvalidError
from ..files.answering import answer_upload
from ..files.backup import restore_backup, write_backup
from ..files.example import EXAMPLE_NAME, example_notes, example_rows
from ..files.exporting import (
    MEDIA,
    Form,
    PredictionForm,
    encoded,
    labelled_records,
    predicted_records,
    write_parquet,
)
from ..files.importing import Progress, import_rows, import_upload
from ..files.packing import read_model, write_model
from ..files.uploads import UPLOAD_FORMATS, Upload, check_form, named_errors, preview
from ..jobs import Work
from ..learning.computed import key_of
from ..schemas import JobFacts, ProjectFacts, ProjectId
from ..store.classes import insert_class
from ..store.jobs import change_job, find_job, job_facts, list_jobs
from ..store.projects import Person, create_project, find_project, new_id
from .projects import project_facts

router = APIRouter()
BUFFER = 1 << 20  # bytes written to an upload at once
Format = Annotated[str, Query(description=f"One of {', '.join(UPLOAD_FORMATS)}.")]
Column = Annotated[str | None, Query(max_length=1_000)]
BINARY: dict[str, Any] = {
    "requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}
SENT = [media for media, _ in MEDIA.values()] + ["application/zip"]
DOWNLOAD: dict[int | str, Any] = {200: {"content": {media: {} for media in SENT}, "description": "The file."}}


async def receive(service: Service, request: Request) -> Path:
    """Keep the body of a request in a file with a name of ours."""
    path = service.jobs.uploads / new_id()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    waiting = bytearray()
    try:
        with os.fdopen(descriptor, "wb") as stream:
            async for part in request.stream():
                waiting += part
                if len(waiting) >= BUFFER:
                    await run_sync(stream.write, bytes(waiting))
                    waiting.clear()
            await run_sync(stream.write, bytes(waiting))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    if not path.stat().st_size:
        path.unlink()
        raise InvalidError("The body is empty: send the file as the body of the request.")
    return path


def with_file(path: Path, work: Work) -> Work:
    """Work that removes its uploaded file at the end."""

    def run(job: str, progress: Progress) -> dict[str, Any]:
        try:
            return work(job, progress)
        finally:
            path.unlink(missing_ok=True)

    return run


async def submit(service: Service, person: Person, project: str | None, kind: str, path: Path, work: Work) -> JobFacts:
    """Begin a job about an uploaded file."""
    try:
        job = await run_sync(service.jobs.submit, person, project, kind, with_file(path, work))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return await run_sync(_facts, service, person, job)


def _facts(service: Service, person: Person, job: str) -> JobFacts:
    with service.database.reading() as connection:
        return JobFacts(**job_facts(find_job(connection, person, job)))


# In


@router.post("/projects/{project}/import", status_code=202, tags=["files"], openapi_extra=BINARY)
async def import_file(
    service: Context,
    person: Someone,
    project: ProjectId,
    request: Request,
    form: Annotated[Format, Query(alias="format")] = "csv",
    text: Column = None,
    label: Annotated[Column, Query(description="The column of labels; empty for none.")] = None,
    delimiter: Annotated[str | None, Query(max_length=1)] = None,
    encoding: Annotated[str | None, Query(max_length=40)] = None,
    skip_broken: bool = False,
    only_preview: Annotated[
        bool, Query(alias="preview", description="Import nothing; show the columns and first rows.")
    ] = False,
) -> Any:
    """Import a file, labelled, unlabelled or both: send it as the body. A job does it, and all of it appears at once."""
    await run_sync(service.project, person, project, "admin")
    characters = service.settings.limits.characters_per_text
    check_form(form)
    path = await receive(service, request)
    upload = Upload(path, form, text, label, delimiter, encoding, skip_broken, characters)
    if only_preview:
        try:
            return await run_sync(preview, upload)
        finally:
            path.unlink(missing_ok=True)

    def work(job: str, progress: Progress) -> dict[str, Any]:
        facts = import_upload(service.database, service.settings.limits, project, job, upload, progress)
        service.learn(person, project)
        return facts

    return await submit(service, person, project, "import", path, work)


@router.post("/projects/restore", status_code=202, tags=["files"], openapi_extra=BINARY)
async def restore(service: Context, person: Someone, request: Request) -> JobFacts:
    """Make a project from a backup: send the archive as the body. The job's result has its id."""
    person.require("admin")
    path = await receive(service, request)

    def work(job: str, progress: Progress) -> dict[str, Any]:
        def start(connection: Connection, project: str) -> None:
            change_job(connection, job, project=project)

        return restore_backup(service.database, service.settings.limits, person, path, start, progress)

    return await submit(service, person, None, "restore", path, work)


@router.post("/projects/from-model", status_code=201, tags=["files"], openapi_extra=BINARY)
async def from_model(
    service: Context,
    person: Someone,
    request: Request,
    name: Annotated[str, Query(min_length=1, max_length=200, pattern="^[^\\x00]*$")] = "Model",
) -> ProjectFacts:
    """Make a project from a saved classifier that kept its examples: send a zip of its folder as the body."""
    person.require("admin")
    path = await receive(service, request)
    try:
        return await run_sync(_project_of_model, service, person, path, name)
    finally:
        path.unlink(missing_ok=True)


def _project_of_model(service: Service, person: Person, path: Path, name: str) -> ProjectFacts:
    with named_errors(path):
        rows, words = read_model(path)
    return _create(service, person, name, words, rows)


def _create(
    service: Service, person: Person, name: str, words: dict[str, str], rows: Any, notes: dict[str, str] | None = None
) -> ProjectFacts:
    """A project with classes, described by words for the model and by notes for people, and rows."""
    limits = service.settings.limits
    with service.database.writing() as connection:
        project = create_project(connection, person, name, most=limits.projects)
        for label, described in words.items():
            note, known = (notes or {}).get(label, ""), "" if described == label else described
            insert_class(connection, project, label, note, known, most=limits.classes)
    import_rows(service.database, limits, project, new_id(), rows, lambda: None)
    with service.database.reading() as connection:
        row = find_project(connection, person, project, "admin")
        service.brain.learn(project, key_of(row))
        return project_facts(connection, person, row)


@router.post("/projects/example", status_code=201, tags=["projects"])
def example(service: Context, person: Someone) -> ProjectFacts:
    """Make the example project: messages to a town's services, a few of them labelled."""
    person.require("admin")
    notes = example_notes()
    return _create(service, person, EXAMPLE_NAME, {name: name for name in notes}, example_rows(), notes)


# Out


def _name(row: Any, ending: str) -> dict[str, str]:
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", row.name).strip("-") or "project"
    return {"content-disposition": f'attachment; filename="{plain}.{ending}"'}


def _made(path: Path, media: str, headers: dict[str, str]) -> FileResponse:
    """A file that is sent and then removed."""
    return FileResponse(path, media_type=media, headers=headers, background=BackgroundTask(path.unlink, missing_ok=True))


@router.get("/projects/{project}/export", tags=["files"], responses=DOWNLOAD, response_class=Response)
def export(
    service: Context,
    person: Someone,
    project: ProjectId,
    form: Annotated[Form, Query(alias="format")] = "csv",
    every: Annotated[bool, Query(alias="all", description="Texts without a label too.")] = False,
) -> Response:
    """Download labelled texts; cells of CSV and TSV that a spreadsheet would run as formulas are escaped."""
    row = service.project(person, project)
    return _download(service, row, form, "labels", labelled_records(service.database, row, every), False)


@router.get("/projects/{project}/predictions", tags=["files"], responses=DOWNLOAD, response_class=Response)
def download_predictions(
    service: Context, person: Someone, project: ProjectId, form: Annotated[PredictionForm, Query(alias="format")] = "csv"
) -> Response:
    """Download all texts with the present model's answers."""
    row = service.project(person, project)
    model = service.brain.model(row)
    model.require()
    return _download(service, row, form, "predictions", predicted_records(service.database, row, model), True)


def _download(service: Service, row: Any, form: str, what: str, records: Iterator[Any], predictions: bool) -> Response:
    media, ending = MEDIA[form]
    headers = _name(row, f"{what}.{ending}")
    if form != "parquet":
        return StreamingResponse(encoded(form, records), media_type=media, headers=headers)
    path = service.jobs.results / f"{new_id()}.parquet"
    write_parquet(path, records, predictions)
    return _made(path, media, headers)


@router.get("/projects/{project}/model", tags=["files"], responses=DOWNLOAD, response_class=Response)
def download_model(service: Context, person: Someone, project: ProjectId) -> FileResponse:
    """Download the present model with its examples: a zip with a folder that `FewShotClassifier.load` and `handful` read."""
    row = service.project(person, project)
    path = service.jobs.results / f"{new_id()}.zip"
    write_model(service.brain.model(row), path)
    return _made(path, "application/zip", _name(row, "model.zip"))


@router.get("/projects/{project}/backup", tags=["files"], responses=DOWNLOAD, response_class=Response)
def backup(service: Context, person: Someone, project: ProjectId) -> FileResponse:
    """Download a backup of the whole project: classes, texts, labels and actions."""
    row = service.project(person, project)
    path = service.jobs.results / f"{new_id()}.zip"
    write_backup(service.database, row, path)
    return _made(path, "application/zip", _name(row, "backup.zip"))


# Jobs


@router.post("/projects/{project}/predict-file", status_code=202, tags=["jobs"], openapi_extra=BINARY)
async def predict_file(
    service: Context,
    person: Someone,
    project: ProjectId,
    request: Request,
    form: Annotated[Format, Query(alias="format")] = "csv",
    text: Column = None,
    out: PredictionForm = "csv",
    skip_broken: bool = False,
) -> JobFacts:
    """Classify the texts of a file of any size: send it as the body. The job's result is a file with the answers."""
    row = await run_sync(service.project, person, project)
    check_form(form)
    path = await receive(service, request)
    upload = Upload(path, form, text, "", None, None, skip_broken, service.settings.limits.characters_per_text)

    def work(job: str, progress: Progress) -> dict[str, Any]:
        made = service.jobs.results / f"{job}.{out}"
        return answer_upload(service.brain.model(row), upload, made, out, progress)

    return await submit(service, person, project, "predict", path, work)


@router.get("/jobs", tags=["jobs"])
def jobs(service: Context, person: Someone, project: ProjectId | None = None) -> list[JobFacts]:
    """Your latest jobs."""
    with service.database.reading() as connection:
        return [JobFacts(**job_facts(row)) for row in list_jobs(connection, person, project)]


@router.get("/jobs/{job}", tags=["jobs"])
def job(service: Context, person: Someone, job: ProjectId) -> JobFacts:
    """A job and its progress."""
    return _facts(service, person, job)


@router.post("/jobs/{job}/cancel", tags=["jobs"])
def cancel(service: Context, person: Someone, job: ProjectId) -> JobFacts:
    """Ask a job to stop; nothing of it is kept. A job that is done stays as it is."""
    with service.database.writing() as connection:
        find_job(connection, person, job)
        change_job(connection, job, cancel=True)
    return _facts(service, person, job)


@router.get("/jobs/{job}/result", tags=["jobs"], responses=DOWNLOAD, response_class=Response)
def result(service: Context, person: Someone, job: ProjectId) -> FileResponse:
    """Download the file that a job made."""
    with service.database.reading() as connection:
        row = find_job(connection, person, job)
    path = service.jobs.result_path(job, json.loads(row.result))
    media = MEDIA[path.suffix[1:]][0]
    return FileResponse(path, media_type=media, headers={"content-disposition": f'attachment; filename="answers{path.suffix}"'})
