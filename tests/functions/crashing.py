"""Attempts in processes of their own that die at a crash point: by `os._exit`, without cleaning up.

The processes are forked from a server that has loaded the library once and has no other thread.
"""

import multiprocessing

from gnl_middleware.testing import CRASH_EXIT_CODE, CRASH_VARIABLE, install_crash_points

_PRELOADED = ["gnl_middleware.journal", "gnl_middleware.storage.database", "pytest", "asyncio"]
_PATIENCE = 60  # seconds after which a child that hangs fails its test

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(_PRELOADED)


def die_at(crash_point, program, *arguments):
    """Run the program in a process of its own, which must die at the crash point."""
    exit_code = _exit_code(_crash, (crash_point, program, arguments))
    assert exit_code == CRASH_EXIT_CODE, f"exit code {exit_code} instead of a death at {crash_point}"


def may_die(program, *arguments):
    """Run the program in a process of its own, which either dies as crash points do or ends well; gives its exit code."""
    exit_code = _exit_code(program, arguments)
    assert exit_code in (0, CRASH_EXIT_CODE)
    return exit_code


def elsewhere(program, *arguments):
    """Run the program in a process of its own, which must end well."""
    assert _exit_code(program, arguments) == 0


def _exit_code(target, arguments):
    process = _processes.Process(target=target, args=arguments, daemon=True)
    process.start()
    process.join(_PATIENCE)
    exit_code = process.exitcode
    if exit_code is None:
        process.kill()
        process.join()
    process.close()
    return exit_code


def _crash(crash_point, program, arguments):
    install_crash_points({CRASH_VARIABLE: crash_point})
    program(*arguments)
