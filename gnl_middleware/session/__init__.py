"""An open run: how one call goes through the journal, and how sync and async wait for it."""
