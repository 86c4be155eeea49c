"""Imported by the server that forks worker processes, and by nobody else.

A signal to a whole process group would end that server, and with it the pool. Whoever asks a job to end asks the job; the
workers, which get the signals' usual meaning back, and this server end with it.
"""

from __future__ import annotations

import signal

import gossamer.engine.worker

__all__ = ["gossamer"]

signal.signal(signal.SIGTERM, signal.SIG_IGN)
