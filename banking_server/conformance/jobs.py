"""Several runs at a time, told of in the order of the plan: nothing depends on which ends first."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from banking_server.conformance.target.child_process import kill_all

T = TypeVar("T")


def in_order(tasks: Sequence[Callable[[], T]], jobs: int) -> Generator[T, None, None]:
    """Yield what each task returns, in the order of the tasks; `jobs` of them run at a time.

    What a task raises is raised here. Programs that others are running are then ended.
    """
    if jobs == 1:
        for task in tasks:
            yield task()
        return
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="job")
    try:
        futures = [pool.submit(task) for task in tasks]
        while futures:
            yield futures.pop(0).result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        kill_all()
        raise
    finally:
        pool.shutdown()
