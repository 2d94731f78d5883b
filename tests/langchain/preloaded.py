"""What the processes of these tests import; the server that they are forked from imports it once."""

import langchain.agents.middleware
import langchain.agents.structured_output
import langgraph.checkpoint.memory
import langgraph.prebuilt
import sqlalchemy.dialects.sqlite

import gnl_langchain.guard
import gnl_middleware.storage.database
import tests.langchain.scripted

__all__ = ["gnl_langchain", "gnl_middleware", "langchain", "langgraph", "sqlalchemy", "tests"]
