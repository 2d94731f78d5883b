"""Where the recorded traffic of public projects is found, and which of it LangChain's agents can play."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("GNL_RECORDED_DIR", ROOT.parent / "shared" / "recorded")).absolute()
DRIVERS = FOLDER / "drivers"
NAMES = (
    "lg_research_parallel",
    "lc_chain_of_two",
    "lc_parallel_stream_x3",
    "lc_raw_dict_stream",
    "lc_structured_x3",
    "an_mcp_tools",
    "an_parallel_stream",
    "err_429_then_ok_spliced",
    "err_429_x3",
)
GRAPHS = tuple(name for name in NAMES if not name.startswith("err_"))
OF_THE_AGENTS_SDK = (
    "oa_recipe_hierarchy",
    "oa_recipe_workflow",
    "oa_handoff_chat",
    "oa_tool_exception",
    "oa_nested_call_401",
    "rs_encrypted_reasoning",
    "lc_chain_of_two",
    "lc_parallel_stream_x3",
    "lc_raw_dict_stream",
    "lc_structured_x3",
)
STREAMED = ("lc_parallel_stream_x3", "lc_raw_dict_stream", "an_parallel_stream")


def missing() -> str | None:
    """Why tests of recorded traffic cannot run here, or None."""
    absent = [name for name in (*NAMES, *OF_THE_AGENTS_SDK) if not (FOLDER / f"{name}.yaml").exists()]
    if DRIVERS.is_dir() and not absent:
        return None
    return f"no recorded traffic in {FOLDER}: it is not part of this repository; set GNL_RECORDED_DIR"
