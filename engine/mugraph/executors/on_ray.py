"""On a Ray cluster: one actor for each processor that is free there, nests dealt out among them.

An actor is not restarted when it or its node dies: the search begins its nests elsewhere and knows what it has had from
them already, which Ray's own retries do not.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import itertools
import logging
import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from mugraph.executors.desks import Desks, Done, Wrong
from mugraph.executors.executor import CannotExecute, Lost, result_of, value_of
from mugraph.executors.tasks import Task
from mugraph.executors.turns import Order, Start, Turned

_log = logging.getLogger("mugraph.executors")

T = TypeVar("T")
MOST = 32
"""Actors: a search has fewer nests than that."""
_PATIENCE_S = 5


class OnRay:
    """address: of a cluster, as `ray.init` takes it ("ray://HOST:PORT" for a client's connection, "HOST:PORT" from one
    of its nodes); None for the one that $RAY_ADDRESS names, else for one on this machine alone, which ends with us.

    Raises CannotExecute: Ray is not installed, or there is no such cluster.
    """

    def __init__(self, address: str | None = None) -> None:
        self.name = f"ray {address}" if address else "ray"
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError:
            raise CannotExecute("Ray is not installed here; pip install 'mugraph[ray]'") from None
        self._ray = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            _answers(address or os.environ.get("RAY_ADDRESS", ""))
            try:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
            except (Exception, SystemExit) as error:
                raise CannotExecute(f"Ray cannot be used: {error}") from None
        self._of("CPU")

    def _of(self, resource: str) -> None:
        asked: dict[str, int] = {"num_cpus": 1} if resource == "CPU" else {"num_cpus": 0, "num_gpus": 1}
        self._resource = resource
        self._kind: Any = self._ray.remote(**asked, max_restarts=0, scheduling_strategy="SPREAD")(Desks)
        self._hosts: list[_Host] = []
        self._share: int | None = None

    def on_gpus(self) -> OnRay | None:
        """Workers of the same cluster with one GPU each; None if no GPU is free. They end before this executor does."""
        gpus = copy.copy(self)
        gpus.name, gpus._ours = f"{self.name}, GPUs", False
        gpus._of("GPU")
        try:
            free = self._ray.available_resources().get("GPU", 0)
        except Exception as error:
            _log.info("the cluster is gone: %s", error)
            return None
        return gpus if free >= 1 else None

    @property
    def workers(self) -> int:
        return len(self._alive()) or self._wanted()

    def begin(self) -> None:
        if not self._alive():
            self._hosts = [_Host(self._ray, self._kind.remote()) for _ in range(self._wanted())]

    def seat(self, start: Start) -> RaySeat:
        self.begin()
        alive = self._alive()
        if not alive:
            raise CannotExecute("the Ray cluster has no processor for us")
        return RaySeat(min(alive, key=lambda host: host.seats), start)

    def submit(self, task: Task[T]) -> Future[T]:
        self.begin()
        alive = self._alive()
        if not alive:
            raise CannotExecute("the Ray cluster has no processor for us")
        return min(alive, key=lambda host: host.waiting).do(task)

    def interrupt(self) -> None:
        hosts, self._hosts = self._hosts, []
        for host in hosts:
            host.kill()

    def close(self) -> None:
        self.interrupt()
        if self._ours and self._ray.is_initialized():
            try:
                self._ray.shutdown()
            except Exception as error:  # the cluster may be gone
                _log.info("the cluster was not left in order: %s", error)

    def _alive(self) -> list[_Host]:
        return [host for host in self._hosts if not host.lost]

    def _wanted(self) -> int:
        """How many actors to have: the processors that were free when we came, if they are still there. What is free
        now is known late: it may not count actors that were just begun, or just killed."""
        try:
            if self._share is None:
                self._share = max(1, int(self._ray.available_resources().get(self._resource, 0)))
            there = sum(int(node["Resources"].get(self._resource, 0)) for node in self._ray.nodes() if node["Alive"])
        except Exception as error:
            _log.info("the cluster is gone: %s", error)
            return 0
        return min(MOST, self._share, there)


def _answers(address: str) -> None:
    """Raises CannotExecute if nothing answers there. Ray itself would wait for five minutes, then end the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return  # none, or one of Ray's own words
    try:
        socket.create_connection((host, int(port)), _PATIENCE_S).close()
    except (OSError, OverflowError) as error:
        raise CannotExecute(f"there is no Ray cluster at {address}: {error}") from None


class RaySeat:
    def __init__(self, host: _Host, start: Start) -> None:
        self._host = host
        self._number = host.take(start)

    def turn(self, order: Order) -> Future[Turned]:
        return self._host.turn(self._number, order)

    def close(self) -> None:
        self._host.leave(self._number)


class _Host:
    """One actor. lost: whether it is known to have died."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self._numbers = itertools.count()
        self.seats = 0
        self.waiting = 0
        """Tasks that it has not answered."""
        self.lost = False

    def take(self, start: Start) -> int:
        number = next(self._numbers)
        self.seats += 1
        with contextlib.suppress(self._ray.exceptions.RayError):  # its turns will say so
            self._actor.take.remote(number, start)
        return number

    def leave(self, number: int) -> None:
        self.seats -= 1
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._actor.leave.remote(number)

    def turn(self, number: int, order: Order) -> Future[Turned]:
        return self._asked(lambda: self._actor.turn.remote(number, order), result_of)

    def do(self, task: Task[T]) -> Future[T]:
        def value(answer: Done | Wrong) -> T:
            return cast("T", value_of(answer))

        self.waiting += 1
        found = self._asked(lambda: self._actor.do.remote(task), value)
        found.add_done_callback(self._answered)
        return found

    def _answered(self, _: object) -> None:
        self.waiting -= 1

    def _asked(self, ask: Callable[[], Any], read: Callable[[Any], T]) -> Future[T]:
        found: Future[T] = Future()
        try:
            answer: Future[Any] = ask().future()
        except self._ray.exceptions.RayError as error:
            self._lose(found, error)
            return found
        answer.add_done_callback(lambda done: self._pass_on(done, found, read))
        return found

    def kill(self) -> None:
        self.lost = True
        try:
            self._ray.kill(self._actor)
        except Exception as error:  # its node may be gone
            _log.info("an actor could not be ended: %s", error)

    def _pass_on(self, done: Future[Any], found: Future[T], read: Callable[[Any], T]) -> None:
        if not found.set_running_or_notify_cancel():
            return
        error = done.exception()
        if error is not None:
            self._lose(found, error)
            return
        try:
            found.set_result(read(done.result()))
        except Exception as wrong:
            found.set_exception(wrong)

    def _lose(self, found: Future[T], error: BaseException) -> None:
        self.lost = True
        found.set_exception(Lost(f"a worker on the Ray cluster is gone ({type(error).__name__})"))
