"""What does a step of a framework's agent take: as it is, with its own checkpointer, through this library?"""

from benchmarks.interleave import Cell, measure_live
from benchmarks.registry import Registry
from benchmarks.results import Figure
from benchmarks.sizes import Sizes


def measure(registry: Registry, sizes: Sizes) -> list[Figure]:
    """Agents of each framework, short and long, alone and with others."""
    figures: list[Figure] = []
    payload = sizes.payloads[0]
    for framework in ("create_agent", "LangGraph", "SDK"):
        subjects = registry.sdk() if framework == "SDK" else registry.agents(framework)
        with registry.prepared(subjects):
            for number, steps in enumerate(sizes.agent_lengths):
                if number and framework == "LangGraph":
                    continue  # create_agent makes such a graph: what grows with the length of a run grows alike
                bare = Cell(subjects[0], 1, steps, payload)
                others = [Cell(subject, 1, steps, payload, bare) for subject in subjects[1:]]
                figures += measure_live([bare, *others], sizes.few_rounds)
            few = [subjects[0], *[subject for subject in subjects if subject.resumes]]
            for runs in sizes.runs_at_once:
                if runs > 1 and framework != "LangGraph":
                    bare = Cell(few[0], runs, sizes.agent_steps_at_once, payload)
                    others = [
                        Cell(subject, runs, sizes.agent_steps_at_once, payload, bare) for subject in few[1:]
                    ]
                    figures += measure_live([bare, *others], sizes.few_rounds)
    return figures
