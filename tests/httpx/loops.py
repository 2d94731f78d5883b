"""Agent loops on the plain SDKs, as people write them: ask, run the tools that were asked for, ask again."""

import asyncio
import json


def openai_loop(client, messages, tools, run_tool, *, model="scripted", stream=False):
    """Chat completions until no tool is asked for; gives the last text."""
    messages = list(messages)
    while True:
        message = _ask(client, model, messages, tools, stream=stream)
        if not message.get("tool_calls"):
            return message["content"]
        messages.append(
            {"role": "assistant", "content": message["content"], "tool_calls": message["tool_calls"]}
        )
        for call in message["tool_calls"]:
            output = run_tool(call["function"]["name"], json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


def _ask(client, model, messages, tools, *, stream):
    if not stream:
        answer = client.chat.completions.create(model=model, messages=messages, tools=tools)
        return answer.choices[0].message.model_dump(exclude_none=True) | {
            "content": answer.choices[0].message.content
        }
    content, calls = "", {}
    for chunk in client.chat.completions.create(model=model, messages=messages, tools=tools, stream=True):
        _add(chunk, calls)
        content += chunk.choices[0].delta.content or ""
    return {"content": content, "tool_calls": list(calls.values())}


def _add(chunk, calls):
    for piece in chunk.choices[0].delta.tool_calls or []:
        empty = {
            "id": piece.id,
            "type": "function",
            "function": {"name": piece.function.name, "arguments": ""},
        }
        calls.setdefault(piece.index, empty)["function"]["arguments"] += piece.function.arguments or ""


async def openai_loop_async(client, messages, tools, run_tool, *, model="scripted"):
    """The same with the asynchronous client."""
    messages = list(messages)
    while True:
        answer = await client.chat.completions.create(model=model, messages=messages, tools=tools)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            output = run_tool(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": output})


async def anthropic_loop(client, request, run_tool):
    """Anthropic's messages until no tool is used; tools of one reply run at once, and give whole blocks. Gives the last text."""
    messages = list(request["messages"])
    same = {name: value for name, value in request.items() if name not in ("messages", "stream")}
    while True:
        reply = await _message(client, messages, same, stream=request.get("stream"))
        uses = [block for block in reply.content if block.type == "tool_use"]
        if not uses:
            return "".join(block.text for block in reply.content if block.type == "text")
        outputs = await asyncio.gather(*(run_tool(use.id, use.name, use.input) for use in uses))
        content = [block.model_dump(exclude_none=True, mode="json") for block in reply.content]
        messages.append({"role": "assistant", "content": content})
        messages.append({"role": "user", "content": outputs})


async def _message(client, messages, same, *, stream):
    if not stream:
        return await client.messages.create(messages=messages, **same)
    async with client.messages.stream(messages=messages, **same) as events:
        return await events.get_final_message()
