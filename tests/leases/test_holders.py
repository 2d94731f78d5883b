"""Who counts as dead: only a holder that is certainly gone."""

import subprocess
import sys
from dataclasses import replace

import pytest

from gnl_middleware.lease import Holder, is_dead, shown
from tests.lacking import lack
from tests.leases import workers
from tests.processes.children import Child


@pytest.fixture
def own():
    """This process as a holder."""
    return Holder.here()


@pytest.fixture
def gone():
    """A process that has ended, as a holder that it was while it lived."""
    finished = subprocess.run(
        [sys.executable, "-c", "from gnl_middleware.lease import Holder; print(Holder.here().to_text())"],
        capture_output=True,
        text=True,
        check=True,
    )
    return Holder.from_text(finished.stdout)


def test_living_process_is_alive(own):
    """A holder whose process lives is never taken for dead, also after the trip through the journal."""
    assert not is_dead(own.to_text())
    assert Holder.from_text(own.to_text()) == own


def test_each_hold_has_a_name_of_its_own(own):
    """Two holds of one process can be told apart."""
    assert Holder.here() != own


def test_ended_process_is_dead(gone):
    """A process of this machine that has ended is dead at once."""
    assert is_dead(gone.to_text())


def test_reused_process_id_is_no_sign_of_life(own):
    """A living process that only has the same id as the holder, but started at another time, does not keep it alive."""
    earlier = replace(own, started=str(int(own.started) - 1))

    assert is_dead(earlier.to_text())


@pytest.mark.parametrize("fact", ["machine", "namespace"])
@pytest.mark.parametrize("told", ["elsewhere", ""])
def test_elsewhere_must_run_out(gone, fact, told):
    """What happens on another machine, boot or pid namespace cannot be seen from here: never declared dead."""
    elsewhere = replace(gone, **{fact: told})

    assert not is_dead(elsewhere.to_text())


def test_machine_is_told_apart_by_its_boot(own):
    """Containers of one image share a machine id, so the boot id belongs to the machine's name."""
    machine_id, _, boot_id = own.machine.partition(":")

    assert boot_id
    assert machine_id != boot_id


def test_holder_without_start_time_must_run_out(gone):
    """Where the system told no start time, a reused process id could not be noticed: never declared dead."""
    assert not is_dead(replace(gone, started="").to_text())


@pytest.mark.parametrize(
    "text",
    [
        "somebody",
        "{}",
        "[]",
        "null",
        "7",
        '"text"',
        '{"pid": 1}',
        '{"host": "h", "machine": "m", "namespace": "n", "pid": 1, "started": "1", "nonce": "n", "more": 1}',
    ],
)
def test_unreadable_holder_must_run_out(text):
    """A holder that this version cannot read is not known to be dead, and is shown as it stands."""
    assert not is_dead(text)
    assert shown(text) == text


@pytest.mark.parametrize("pid", ["x", None, -1, 0, 1.5, True, "../self"])
def test_holder_without_a_process_id_must_run_out(gone, pid):
    """A pid that is no process id says nothing about any process: never declared dead."""
    assert not is_dead(replace(gone, pid=pid).to_text())


@pytest.mark.parametrize("started", [1, None, ["1"]])
def test_holder_with_a_damaged_start_time_must_run_out(own, started):
    """A start time that is no text of ours cannot prove that the living process of that id is another one."""
    assert not is_dead(replace(own, started=started).to_text())


def test_nobody_is_dead():
    """A run without a holder is free."""
    assert is_dead(None)
    assert is_dead("")
    assert shown(None) == "nobody"


def test_zombie_is_dead(path, open_journal):
    """A killed process that its parent has not buried yet holds nothing any more."""
    with Child(workers.never_bury, path) as child:
        child.hear()
        (record,) = open_journal().runs()
        assert record.status == "running"

        child.kill(bury=False)

        (record,) = open_journal().runs()
        assert record.status == "interrupted"
        with open_journal().run(workers.RUN) as run:
            assert run.attempt == 2


def test_stopped_process_is_alive(path, open_journal):
    """A suspended process may go on at any moment: it keeps its run until the lease ends."""
    with Child(workers.never_bury, path) as child:
        child.hear()

        child.stop()

        (record,) = open_journal().runs()
        assert record.status == "running"
        assert record.holder is not None


def test_command_name_cannot_pose_as_a_state():
    """A process may call itself what it likes, also `) Z 1`: it lives all the same."""
    renamed = (
        "import sys; from gnl_middleware.lease import Holder\n"
        "open('/proc/self/comm', 'w').write(') Z 1 (')\n"
        "print(Holder.here().to_text(), flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", renamed], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert not is_dead(process.stdout.readline())
        process.stdin.close()


def test_shown_as_people_read_it(own):
    """A holder is shown as process and machine, not as the text that is stored."""
    assert shown(own.to_text()) == f"pid {own.pid} on {own.host}"


def test_process_that_is_hidden_is_alive(own):
    """A living process of another user that /proc hides (mounted with hidepid) is not taken for dead."""
    hidden = subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            'mount -t proc -o hidepid=2 proc /proc && exec "$@"',
            "sh",
            sys.executable,
            "-c",
            _ASK_AS_ANOTHER_USER,
            own.to_text(),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in hidden.stderr or "mount:" in hidden.stderr:
        lack("this system lets no test hide its processes")

    assert (hidden.stdout, hidden.stderr) == ("False\n", "")


_ASK_AS_ANOTHER_USER = """
import os, sys
from gnl_middleware.lease import Holder, is_dead
Holder.here(), is_dead(sys.argv[1])  # what has to be imported is imported while it may be read
os.setgroups([]), os.setgid(65534), os.setuid(65534)
print(is_dead(sys.argv[1]))
"""
