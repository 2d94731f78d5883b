"""A hand-written graph that survives a crash: a model node, a tool node, and a node that is one step by itself."""

from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

from gnl_langchain import journaled_model, run_durable
from gnl_langchain.demo.desk import HelpDesk, Mail
from gnl_langgraph import JournalToolNode, journaled_node
from gnl_middleware import Done, InterruptedCall, NotDone, current_step, never

desk = HelpDesk.open("helpdesk")


def create_ticket(customer_id: str, subject: str) -> str:
    """Open a support ticket and return its number."""
    return desk.open_ticket(customer_id, subject, reference=current_step().idempotency_key)


def find_ticket(call: InterruptedCall) -> Done | NotDone:
    number = desk.find_ticket(call.idempotency_key)
    return Done(number) if number else NotDone()


@journaled_node(
    replay=never
)  # nothing can be asked whether the mail went out: after a crash a person decides
def report(state: MessagesState) -> dict[str, Any]:
    desk.send_mail(Mail("desk@example.com", "Ticket", state["messages"][-1].text))
    return {"messages": [("ai", "The desk has been told.")]}


tools = JournalToolNode([create_ticket], policies={"create_ticket": never(recover=find_ticket)})
model = journaled_model(ChatOpenAI(model="gpt-4.1-mini")).bind_tools([create_ticket])


def ask(state: MessagesState) -> dict[str, Any]:
    return {"messages": [model.invoke(state["messages"])]}


def route(state: MessagesState) -> str:
    return "tools" if state["messages"][-1].tool_calls else "report"


graph = StateGraph(MessagesState)
graph.add_node("ask", ask)
graph.add_node("tools", tools)
graph.add_node("report", report)
graph.add_edge(START, "ask")
graph.add_conditional_edges("ask", route, ["tools", "report"])
graph.add_edge("tools", "ask")
graph.add_edge("report", END)

request = {"messages": [("user", "Customer C-1042: order 8841 is water damaged. Open a ticket.")]}
state = run_durable(graph.compile(), request, run_id="order:8841", journal="support.db")
print(state["messages"][-2].text)
