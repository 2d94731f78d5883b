"""What model providers are told and answer over HTTP: plain JSON, read without any SDK.

Three formats are known: OpenAI's chat completions and responses, and Anthropic's messages, each also as a stream.
"""

from .formats import WireFormat, format_of
from .told import Answered, Asks, Conversation, Said, Told

__all__ = ["Answered", "Asks", "Conversation", "Said", "Told", "WireFormat", "format_of"]
