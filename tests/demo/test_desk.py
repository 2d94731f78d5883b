"""The demo's help desk and mailbox: real effects, with nothing that would hide a duplicate."""

import multiprocessing
import os

import pytest

from gnl_langchain.demo.desk import HelpDesk, Mail

MAIL = Mail("orders@harbour-books.example", "T-1001: damaged", "A reprint is on its way.")


@pytest.fixture
def desk(tmp_path):
    return HelpDesk.open(tmp_path / "desk")


def act_and_die(folder: str) -> None:
    desk = HelpDesk.open(folder)
    desk.open_ticket("C-1042", "damaged", reference="key-1")
    desk.send_mail(MAIL)
    os._exit(70)


def test_effects_survive_the_death_of_their_process(desk):
    """A ticket and a mail are on the disk even if the process dies in the statement after them."""
    process = multiprocessing.get_context("spawn").Process(target=act_and_die, args=(str(desk.folder),))

    process.start()
    process.join()

    assert process.exitcode == 70
    assert (desk.tickets(), desk.mails()) == (["T-1001"], [MAIL])


def test_the_desk_does_not_protect_itself(desk):
    """The same call twice makes two tickets and two mails, so a duplicate shows in every count."""
    for _ in range(2):
        desk.open_ticket("C-1042", "damaged", reference="key-1")
        desk.send_mail(MAIL)

    assert (desk.tickets(), desk.mails()) == (["T-1001", "T-1002"], [MAIL, MAIL])


def test_the_desk_finds_a_ticket_by_its_reference_and_notes_the_question(desk):
    """Asking for a reference gives the ticket filed under it or None, and leaves a trace."""
    desk.open_ticket("C-1042", "damaged", reference="key-1")

    found = [desk.find_ticket("key-1"), desk.find_ticket("key-2")]

    assert found == ["T-1001", None]
    assert desk.inquiries() == found


def test_a_desk_is_opened_again_as_it_was(desk):
    """Opening the folder a second time neither empties nor doubles anything."""
    desk.open_ticket("C-1042", "damaged", reference="key-1")

    again = HelpDesk.open(desk.folder)

    assert again.tickets() == ["T-1001"]
    assert again.lookup_customer("C-1042")["email"] == "orders@harbour-books.example"
    assert again.lookup_customer("C-9") is None
