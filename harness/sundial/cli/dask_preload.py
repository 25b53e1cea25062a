# SPDX-License-Identifier: Apache-2.0
"""Makes workers that Dask's own programs start workers of Sundial: `dask worker --preload sundial.cli.dask_preload`.

So they come by whatever starts those of Dask: `dask-ssh`, dask-jobqueue for Slurm, the operator for Kubernetes.
"""

from __future__ import annotations

from typing import Any

from sundial.cli import sweep_rooms

_agents: list[Any] = []


def dask_setup(worker: Any) -> None:
    """Called by Dask before the worker joins. It makes as many runs at a time as it has threads."""
    agent = sweep_rooms.agent(worker.state.nthreads, None)
    sweep_rooms.serve_as(agent)
    _agents.append(agent)


def dask_teardown(worker: Any) -> None:
    """Called by Dask when the worker ends."""
    while _agents:
        _agents.pop().close()
