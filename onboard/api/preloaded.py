"""Modules that checks and submissions import, loaded once in the server for all forked children.

Importing them in a child would take a second of CPU for every dataset. A test fails if one is missing here.
"""

from __future__ import annotations

import alembic.command
import alembic.config
import alembic.script  # noqa: F401 - imported to be there
import celery.app.amqp
import celery.canvas
import celery.worker.worker  # noqa: F401 - imported to be there
import fsspec.core
import fsspec.implementations.local  # noqa: F401 - imported to be there
import pyarrow.parquet  # noqa: F401 - imported to be there
import safetensors.numpy  # noqa: F401 - imported to be there
import tokenizers  # noqa: F401 - imported to be there

import onboard.api.intake
import onboard.bases.tokens
import onboard.broker.app
import onboard.broker.bells
import onboard.broker.doorbell
import onboard.broker.filesystem
import onboard.broker.trouble
import onboard.broker.url
import onboard.data.labels_alone
import onboard.data.read
import onboard.jobs.submit
import onboard.jobs.waking
import onboard.messages
import onboard.registry.schema
import onboard.registry.services  # noqa: F401 - imported to be there
