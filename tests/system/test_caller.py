"""What the library's client reads of a broker: what it says, and nothing of what comes behind."""
import os
import socket

import pytest

import frames
from brokers import place_fixture
from frames import BOUND, field

place = place_fixture
IS_HANDOFF = 1


def listen(place, path):
    door = socket.socket(socket.AF_UNIX)
    place.sockets.append(door)
    door.settimeout(BOUND)
    door.bind(path)
    door.listen(8)
    return door


@pytest.fixture(name='door')
def door_fixture(place):
    """Where clients come to a broker that does exactly what it is told to."""
    os.mkdir(place.folder, 0o700)
    return listen(place, f'{place.folder}/broker')


def accept(door):
    """The next client, whose Hello and request were read."""
    client, _ = door.accept()
    client.settimeout(BOUND)
    frames.read_frame(client)
    assert frames.read_exactly(client, 7) == b'request'
    return client


def negotiated(capabilities=IS_HANDOFF, endpoint='', warnings=()):
    body = (field(1, 1) + field(3, endpoint) + b''.join(field(4, text) for text in warnings)
            + field(5, capabilities) + field(8, 1))
    return frames.frame(frames.envelope(frames.RESPONSE, frames.HELLO, field(1, body)))


WELCOME = frames.frame(frames.envelope(frames.EVENT, frames.HANDOFF, field(6, field(1, 1))))
LONG = ['a warning of many words ' * 10] * 4


@pytest.mark.parametrize('step', [1, 3, 5, 6, 1 << 16], ids=lambda step: f'by-{step}')
@pytest.mark.parametrize('warnings', [(), LONG], ids=['short', 'long'])
@pytest.mark.parametrize('answered', [True, False], ids=['answered', 'welcomed'])
def test_what_comes_behind_a_reply_is_the_caller_s(place, door, answered, warnings, step):
    caller = place.call('raw', 'request', *(['answered'] if answered else []))
    client = accept(door)
    said = negotiated(warnings=warnings) + (b'' if answered else WELCOME) + b'an answer'
    for at in range(0, len(said), step):
        client.sendall(said[at:at + step])
    client.close()
    assert caller.communicate(timeout=BOUND)[0] == 'handed 1\nan answer'


def test_a_reply_that_breaks_off_leads_to_another_round(place, door):
    caller = place.call('raw', 'request', 'answered')
    client = accept(door)
    client.sendall(negotiated()[:-1])
    client.close()
    client = accept(door)
    client.sendall(negotiated() + b'an answer')
    client.close()
    assert caller.communicate(timeout=BOUND)[0] == 'handed 2\nan answer'


def test_what_comes_behind_a_reply_that_sends_elsewhere_is_no_answer(place, door):
    elsewhere = listen(place, f'{place.folder}/elsewhere')
    caller = place.call('raw', 'request', 'answered')
    client = accept(door)
    client.sendall(negotiated(0, f'{place.folder}/elsewhere') + b'an answer')
    client.close()
    # It ends unanswered.
    accept(elsewhere).close()
    client = accept(door)
    client.sendall(negotiated() + b'another')
    client.close()
    assert caller.communicate(timeout=BOUND)[0] == 'handed 2\nanother'
