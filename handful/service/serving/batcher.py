"""Requests that arrive together are answered together: one thread computes, for all that wait."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple

from ...classifier.fitted import FittedClassifier
from ...utils.functional import Floats
from ..errors import BusyError

AT_ONCE = 256  # texts computed together
MOST_WAITING = 50_000  # texts


class Answers(NamedTuple):
    """Logits of texts, (texts, classes), and the classifier that gave them."""

    fitted: FittedClassifier
    scores: Floats


class Batcher:
    """Answers texts on one thread; many small requests cost little more than one large one."""

    def __init__(self, current: Callable[[], FittedClassifier]) -> None:
        self._current = current
        self._queue: SimpleQueue[tuple[list[str], Future[Answers]] | None] = SimpleQueue()
        self._waiting, self._guard = 0, Lock()
        self._thread = Thread(target=self._work, name="answers", daemon=True)
        self._thread.start()

    def submit(self, texts: list[str]) -> Future[Answers]:
        """The answers to texts, once they are computed."""
        with self._guard:
            if self._waiting + len(texts) > MOST_WAITING:
                raise BusyError(f"{self._waiting:,} texts are waiting for answers: send these again later.")
            self._waiting += len(texts)
        future: Future[Answers] = Future()
        self._queue.put((texts, future))
        return future

    def close(self) -> None:
        """Answer all that wait, and stop."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        stopped = False
        while not stopped:
            first = self._queue.get()
            if first is None:
                return
            together = [first]
            count = len(first[0])
            while count < AT_ONCE:
                try:
                    more = self._queue.get_nowait()
                except Empty:
                    break
                if more is None:
                    stopped = True
                    break
                together.append(more)
                count += len(more[0])
            self._answer(together)

    def _answer(self, together: list[tuple[list[str], Future[Answers]]]) -> None:
        wanted = [one for one in together if one[1].set_running_or_notify_cancel()]
        try:
            fitted = self._current()
            scores = fitted.scores([text for texts, _ in wanted for text in texts])
            start = 0
            for texts, future in wanted:
                future.set_result(Answers(fitted, scores[start : start + len(texts)]))
                start += len(texts)
        except Exception as error:
            for _, future in wanted:
                if not future.done():
                    future.set_exception(error)
        with self._guard:
            self._waiting -= sum(len(texts) for texts, _ in together)
