"""The tables, the same on every database; typed columns, never keys glued from strings."""

import sqlalchemy as sa

SCHEMA_VERSION = 3
"""The newest schema that this version of the library reads and writes."""

metadata = sa.MetaData()

_text = sa.Text
_bytes = sa.LargeBinary
_integer = sa.BigInteger
_seconds = sa.Double

schema_table = sa.Table(
    "gnl_schema",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("synced_at", _seconds, nullable=False, server_default="0"),
)

runs = sa.Table(
    "gnl_runs",
    metadata,
    sa.Column("run_id", _text, primary_key=True),
    sa.Column("status", _text, nullable=False),
    sa.Column("attempts", _integer, nullable=False),
    sa.Column("created_at", _seconds, nullable=False),
    sa.Column("updated_at", _seconds, nullable=False),
    sa.Column("completed_at", _seconds),
    sa.Column("fence", _integer, nullable=False),
    sa.Column("holder", _text),
    sa.Column("lease_ends_at", _seconds, nullable=False),
    sa.Column("input_digest", _text),
    sa.Column("metadata", _bytes, nullable=False),
    # How many rows of steps must be found again: a lost one would let its side effect happen once more.
    sa.Column("side_effects", _integer, nullable=False, server_default="0"),
    # Of the chain over its rows, and how many rows that covers: rows that are changed together still do not fit it.
    sa.Column("chain_head", _text),
    sa.Column("chain_rows", _integer),
    # 0 where several workers may be at it at once, each call claimed by one of them.
    sa.Column("locked", _integer, nullable=False, server_default="1"),
    # The run that it was forked from, and whether it may perform side effects of its own.
    sa.Column("forked_from", _text),
    sa.Column("effects", _integer, nullable=False, server_default="1"),
    sa.Index("gnl_runs_by_status", "status", "updated_at"),
    sa.Index("gnl_runs_by_time", "updated_at"),
)

attempts = sa.Table(
    "gnl_attempts",
    metadata,
    sa.Column("run_id", _text, primary_key=True),
    sa.Column("attempt", _integer, primary_key=True),
    sa.Column("holder", _text, nullable=False),
    sa.Column("started_at", _seconds, nullable=False),
    sa.Column("ended_at", _seconds),
    sa.Column("status", _text, nullable=False),
    sa.Column("error", _text),
    # What the run's head is the head of, with the attempt that made it last.
    sa.Column("links", _bytes),
    # Of a run without a lock, whose attempts go on side by side; else the run has the lease.
    sa.Column("lease_ends_at", _seconds),
    # What it did not spend again; unknown of an attempt that was killed.
    sa.Column("steps_ran", _integer),
    sa.Column("steps_read_back", _integer),
    sa.Column("tokens_not_spent", _integer),
    sa.Column("seconds_not_spent", _seconds),
)

steps = sa.Table(
    "gnl_steps",
    metadata,
    sa.Column("run_id", _text, primary_key=True),
    sa.Column("key", _text, primary_key=True),
    sa.Column("number", _integer, nullable=False),
    sa.Column("scope", _text, nullable=False),
    sa.Column("kind", _text, nullable=False),
    sa.Column("name", _text, nullable=False),
    sa.Column("policy", _text, nullable=False),
    sa.Column("status", _text, nullable=False),
    sa.Column("token", _text, nullable=False),
    sa.Column("fence", _integer, nullable=False),
    sa.Column("tries", _integer, nullable=False),
    sa.Column("attempt", _integer, nullable=False),
    sa.Column("started_at", _seconds, nullable=False),
    sa.Column("begun", _integer, nullable=False),
    sa.Column("arguments_hash", _text, nullable=False),
    sa.Column("fingerprint", _text, nullable=False),
    sa.Column("reply", _text),
    sa.Column("position", _integer),
    sa.Column("call_id", _text),
    sa.Column("rounds", _text, nullable=False),
    sa.Column("shape", _text),
    sa.Column("base", _text),
    sa.Column("setups", _text, nullable=False),
    sa.Column("answered", _text, nullable=False),
    sa.Column("calls", _text, nullable=False),
    sa.Column("reply_digest", _text),
    sa.Column("tokens", _integer, nullable=False),
    sa.Column("finished_at", _seconds),
    sa.Column("ended", _integer),
    sa.Column("value_hash", _text),
    sa.Column("failure", _bytes),
    sa.Column("raw", _integer, nullable=False),
    sa.Column("blocked", _text),
    sa.Column("resolution", _text),
    sa.Column("drifted", _integer, nullable=False),
    sa.Column("late", _bytes),
    sa.Column("side_effect", _integer, nullable=False),
    # What was written together is believed only together.
    sa.Column("intent_seal", _text, nullable=False),
    sa.Column("outcome_seal", _text),
    # Who is at it and until when, in a run without a lock; renewed, so no part of what was sealed.
    sa.Column("holder", _text),
    sa.Column("claimed_until", _seconds),
    # In a fork: the run in which the step began, whose idempotency key it keeps, and the run whose payloads it shares.
    sa.Column("origin", _text),
    sa.Column("payloads", _text),
    sa.Index("gnl_steps_by_payloads", "payloads"),
)

blobs = sa.Table(
    "gnl_blobs",
    metadata,
    sa.Column("run_id", _text, primary_key=True),
    sa.Column("hash", _text, primary_key=True),
    # 0 as it is, 1 compressed, 2 spliced and compressed.
    sa.Column("compressed", _integer, nullable=False),
    sa.Column("body", _bytes, nullable=False),
    # Of one that is spliced: the hash of the payload of the same run, stored whole, that holds what is left out.
    sa.Column("source", _text),
)

effects = sa.Table(
    "gnl_effects",
    metadata,
    # The run that the effect may happen once in; empty for the whole journal.
    sa.Column("window_run", _text, primary_key=True),
    sa.Column("tool", _text, primary_key=True),
    sa.Column("digest", _text, primary_key=True),
    sa.Column("owner_run", _text, nullable=False),
    sa.Column("owner_key", _text, nullable=False),
    sa.Column("claimed_at", _seconds, nullable=False),
)

resolutions = sa.Table(
    "gnl_resolutions",
    metadata,
    sa.Column("id", _text, primary_key=True),
    sa.Column("run_id", _text, nullable=False),
    sa.Column("key", _text, nullable=False),
    sa.Column("token", _text, nullable=False),
    sa.Column("decision", _text, nullable=False),
    sa.Column("value_hash", _text),
    sa.Column("decided_by", _text, nullable=False),
    sa.Column("note", _text, nullable=False),
    sa.Column("decided_at", _seconds, nullable=False),
    sa.Index("gnl_resolutions_by_step", "run_id", "key"),
)

tags = sa.Table(
    "gnl_tags",
    metadata,
    sa.Column("run_id", _text, primary_key=True),
    sa.Column("tag", _text, primary_key=True),
    sa.Index("gnl_tags_by_tag", "tag"),
    sqlite_with_rowid=False,  # one tree less in each file
)

run_metadata = sa.Table(
    "gnl_metadata",
    metadata,
    sa.Column("run_id", _text, primary_key=True),
    # Of one name and its value together: what a run is found by holds no text of a user's a second time.
    sa.Column("digest", _text, primary_key=True),
    sa.Index("gnl_metadata_by_digest", "digest"),
    sqlite_with_rowid=False,  # one tree less in each file
)

removals = sa.Table(
    "gnl_removals",
    metadata,
    sa.Column("removal", _text, primary_key=True),
    sa.Column("run_id", _text, primary_key=True),
    sa.Column("kind", _text, nullable=False),
    sa.Column("removed_at", _seconds, nullable=False),
    sa.Column("removed_by", _text, nullable=False),
    sa.Column("note", _text, nullable=False),
    sa.Column("steps", _integer, nullable=False),
    sa.Column("steps_kept", _integer, nullable=False),
    sa.Column("payloads", _integer, nullable=False),
    sa.Column("bytes", _integer, nullable=False),
    sa.Column("digest", _text, nullable=False),
    sa.Index("gnl_removals_by_run", "run_id"),
    sqlite_with_rowid=False,  # one tree less in each file
)
