#!/usr/bin/python3
"""Three people in a room whose process is killed while they talk: the room moves to another
process, and nobody misses a word or hears one twice.

    examples/chat/demo.py [BUILD]

Needs what was built in that folder. Everything is in a folder of its own, and ends with it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

PATIENCE = 100      # seconds after which it is given up
PEOPLE = ['ada', 'ben', 'cem']
WORDS = 8           # that each of them says, before the kill and after it


class Demo:
    """A broker, two processes with rooms, and people."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.top = tempfile.mkdtemp(prefix='baton-chat-')
        self.env = {**os.environ, 'BATON_BROKER': f'{self.top}/broker',
                    'BATON_STORE': f'sqlite:{self.top}/chat.db'}
        self.started = []
        os.mkdir(f'{self.top}/rooms')

    def baton(self, *arguments):
        return subprocess.run([self.build / 'src/cli/baton', *arguments], env=self.env, text=True,
                              check=False, stdout=subprocess.PIPE).stdout

    def start(self, program, *arguments, **options):
        self.started.append(subprocess.Popen([self.build / program, *arguments], env=self.env,
                                             text=True, **options))
        return self.started[-1]

    def owner(self, room):
        """Who has the room now, and which process that is."""
        found = json.loads(self.baton('where', 'rooms', room, '--json'))
        return found['runner'], found['pid'], found['fence']

    def begin(self):
        self.baton('queue', 'set', 'rooms', 'mode=runner', 'shards=8')
        self.start('src/cli/baton', 'serve', '--store', self.env['BATON_STORE'],
                   stderr=subprocess.DEVNULL)
        rooms = {}
        for name in ('left', 'right'):
            rooms[name] = self.start('examples/example-chat-room', name, f'{self.top}/rooms')
            while not self.owner('kitchen')[0]:
                pass
        while not os.path.exists(f'{self.top}/broker/broker'):
            pass
        return rooms

    def end(self):
        for process in reversed(self.started):
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()
        shutil.rmtree(self.top, ignore_errors=True)


def talk(people, words, meanwhile=lambda: None):
    """Everybody says so much at the same time, and hears all of it; what each heard. Something
    happens when the first has heard something."""
    def listen(name, person, heard):
        for number in range(words):
            person.stdin.write(f'{name} has said {number}\n')
            person.stdin.flush()
        for _ in range(words * len(people)):
            heard.append(person.stdout.readline().rstrip('\n'))
            if name == PEOPLE[0] and len(heard) == 1:
                meanwhile()
    heard = {name: [] for name in people}
    threads = [threading.Thread(target=listen, args=(name, person, heard[name]))
               for name, person in people.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return heard


def verdict(heard):
    """What is wrong; '': nothing."""
    first = heard[PEOPLE[0]]
    said = [line.split()[1] for line in first]
    numbers = [int(line.split()[0]) for line in first]
    if any(lines != first for lines in heard.values()):
        return 'they have not heard the same'
    if len(set(said)) != len(said) or len(said) != 2 * WORDS * len(PEOPLE):
        return 'something was heard twice, or not at all'
    return '' if numbers == sorted(numbers) else 'something was heard too late'


def give_up(*_):
    sys.exit(f'it has taken longer than {PATIENCE} s')


def main(build):
    demo = Demo(build)
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        rooms = demo.begin()
        people = {name: demo.start('examples/example-chat-client', 'kitchen', name,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                  for name in PEOPLE}
        heard = talk(people, WORDS)
        name, pid, fence = demo.owner('kitchen')
        print(f'{len(PEOPLE)} people talk in the kitchen, which is with process {pid} ({name}), '
              f'fence {fence}', flush=True)
        after = talk(people, WORDS, rooms[name].kill)
        print(f'process {pid} was killed while they went on', flush=True)
        name, pid, higher = demo.owner('kitchen')
        print(f'the kitchen is with process {pid} ({name}), fence {higher}', flush=True)
        for who in PEOPLE:
            heard[who] += after[who]
        fault = verdict(heard) or ('' if higher > fence else 'the fence did not grow')
        print(fault or f'each has heard all {2 * WORDS * len(PEOPLE)} messages once, in one order')
        return 1 if fault else 0
    finally:
        demo.end()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else 'build'))
