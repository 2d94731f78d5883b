"""Values that nobody damaged but that no adapter has written either: they are refused, with the name of their step."""

import pytest

from gnl_langchain import replies
from gnl_middleware import Journal, JournalCorruptError
from gnl_middleware.adapter import Message, ModelCall, Reply, perform, request_of

_QUESTION = {"role": "user", "content": "please pay"}

FORGED = (
    *(b"5", b"null", b'"text"', b"[]", b"{}", b'{"chunks":5}', b'{"chunks":[1]}'),
    *(b'{"generations":3,"llm_output":null}', b'{"generations":[{"message":5}],"llm_output":null}'),
    b'{"$gnl":"langgraph.Command","value":{"goto":"here"}}',
    b'{"$gnl":"langgraph.Send","value":{"node":"here","arg":2}}',
)


def _call(decode, content=b""):
    return ModelCall(
        name="model",
        request=request_of((_QUESTION,), (Message("user", "digest"),), "setup"),
        messages=(_QUESTION,),
        describe=lambda _value: Reply(digest="reply"),
        encode=lambda _value: content,
        decode=decode,
    )


@pytest.mark.parametrize("decode", [replies.as_result, replies.as_chunks], ids=["whole", "streamed"])
@pytest.mark.parametrize("content", FORGED)
def test_forged_reply(tmp_path, content, decode):
    """What is no reply of a model is never given to an agent, nor an error of Python's: the error names its step."""
    with Journal(tmp_path / "runs.db") as journal:
        with journal.run("order-7") as run:
            perform(run.session, _call(lambda value: value, content), lambda: "reply")

        with pytest.raises(JournalCorruptError) as damaged, journal.run("order-7", offline=True) as run:
            list(perform(run.session, _call(decode), lambda: "reply"))

    assert damaged.value.where.startswith("run 'order-7', step 'model/")
