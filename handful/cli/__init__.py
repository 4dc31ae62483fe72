"""The command line: every command is one call into the library, which is imported when the command runs."""

from __future__ import annotations

import click

from .. import __version__
from .benchmark import benchmark, table
from .classifier import explain, fit, inspect, predict, score, suggest
from .common import Group
from .datasets import datasets, split
from .encoders import encoders
from .meta import demo, evaluate, train
from .report import attention, report
from .service import keys, serve, studio
from .vectors import vectors


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__)
def main() -> None:
    """Text classification from a handful of examples.

    \b
    handful demo                                        see it work
    handful fit examples.csv --out triage               a classifier from a few labelled texts
    handful predict triage inbox.csv --out answers.csv  answer a file of any size
    handful explain triage "the parcel never came"      see which words mattered
    handful serve triage --port 8000                    answer other programs
    handful studio                                      label texts in a browser, and watch it learn
    handful datasets get reuters                        fetch a benchmark's data
    handful train --data reuters --out runs/reuters     meta-train the attention generator
    handful evaluate runs/reuters --json                test it on unseen classes
    handful benchmark smoke --out smoke.jsonl           run a grid of methods and data sets
    handful table smoke.jsonl                           see it next to the paper's figures
    handful report runs/reuters --out report.html       see what a run learned, in pictures
    """


_classifier = (fit, predict, score, explain, suggest, inspect)
_meta = (train, evaluate, attention, report, benchmark, table, datasets, split, vectors, encoders)
_service = (studio, serve, keys)
for _command in (demo, *_classifier, *_service, *_meta):
    main.add_command(_command)
