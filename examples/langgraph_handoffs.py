"""Two agents in one graph: the first hands over to the second, which pays money back; a crash repeats neither."""

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from gnl_langchain import JournalMiddleware, run_durable
from gnl_langchain.demo.desk import HelpDesk
from gnl_middleware import Done, InterruptedCall, NotDone, current_step, never, safe

desk = HelpDesk.open("helpdesk")


@safe  # it only says who goes on
def hand_to_billing(runtime: ToolRuntime) -> Command[str]:
    """Hand the customer over to the billing agent."""
    answer = ToolMessage("Billing goes on.", tool_call_id=runtime.tool_call_id)
    messages = [*runtime.state["messages"], answer]
    return Command(goto="billing", update={"messages": messages}, graph=Command.PARENT)


def find_ticket(call: InterruptedCall) -> Done | NotDone:
    number = desk.find_ticket(call.idempotency_key)
    return Done(number) if number else NotDone()


@never(recover=find_ticket)
def create_ticket(customer_id: str, subject: str) -> str:
    """Open a billing ticket and return its number."""
    return desk.open_ticket(customer_id, subject, reference=current_step().idempotency_key)


model = ChatOpenAI(model="gpt-4.1-mini")
triage = create_agent(model, [hand_to_billing], name="triage", middleware=[JournalMiddleware()])
billing = create_agent(model, [create_ticket], name="billing", middleware=[JournalMiddleware()])

graph = StateGraph(MessagesState)
graph.add_node("triage", triage, destinations=("billing",))
graph.add_node("billing", billing)
graph.add_edge(START, "triage")

request = {"messages": [("user", "Customer C-1042: order 8841 was charged twice.")]}
state = run_durable(graph.compile(), request, run_id="order:8841", journal="support.db")
print(state["messages"][-1].text)
