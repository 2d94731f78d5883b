"""The smallest agent on the adapter surface: a model whose replies ask for tool calls, and those calls."""

from gnl_middleware.adapter import (
    Message,
    ModelCall,
    Reply,
    ReplyCall,
    ToolCall,
    digest,
    perform,
    perform_async,
    request_of,
    session_for,
)


def model_call(question, calls):
    """A model is asked; its reply, which the test scripts, asks for tool calls (id, name, arguments)."""
    asked = tuple(ReplyCall(call_id, name, digest(arguments)) for call_id, name, arguments in calls)
    return ModelCall(
        name="model",
        request=request_of((question,), (Message(role="user", digest=digest(question)),), "setup"),
        messages=(question,),
        describe=lambda reply: Reply(digest=digest(reply), calls=asked),
    )


def ask(question, calls):
    """Ask the model and give its reply."""
    return perform(session_for(name="model"), model_call(question, calls), lambda: [question, calls])


def tool_call(policy, call_id="c-1", name="pay", arguments=None):
    """A tool is called because a reply asks for it."""
    return ToolCall(name=name, policy=policy, arguments=arguments or {"order": "o-7"}, call_id=call_id)


def use(call, body):
    """Call a tool."""
    return perform(session_for(name=call.name), call, body)


def use_async(call, body):
    """Call a tool without blocking the event loop."""
    return perform_async(session_for(name=call.name), call, body)
