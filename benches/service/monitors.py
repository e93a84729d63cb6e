"""Follows a service with many monitors while runs are launched: monitors.py URL MONITORS LAUNCHES.

Prints events told per second, the time from a launch's request to its event at a monitor (p50 and p99 in ms), and what
went wrong: monitors that lost their connection, missed an event or got one twice.
"""

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

PATIENCE = 60


def head(method, path, more=""):
    return f"{method} {path} HTTP/1.1\r\nhost: {AT.netloc}\r\n{more}\r\n".encode()


async def monitor(opened, seen):
    """Notes the number, the kind, the run and the time of every event of a run."""
    reader, writer = await asyncio.open_connection(AT.hostname, AT.port, limit=1 << 20)
    writer.write(head("GET", "/v1/events", "accept: text/event-stream\r\n"))
    status = await reader.readline()
    assert b" 200 " in status, status
    number = None
    try:
        while line := await reader.readline():
            if line.startswith(b"event: scan"):
                opened.release()
            elif line.startswith(b"id: "):
                number = int(line[4:])
            elif line.startswith(b"data: ") and number is not None:
                told = json.loads(line[6:])
                seen.append((number, told["run"], time.perf_counter()))
                number = None
    finally:
        writer.close()


async def launch(count):
    """Launches one run after the other; answers when each was asked for."""
    asked = {}
    reader, writer = await asyncio.open_connection(AT.hostname, AT.port)
    for n in range(count):
        body = json.dumps({"inputs": {"n": n}})
        begun = time.perf_counter()
        more = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(head("POST", "/v1/skills/bench-wait/execute/async", more) + body.encode())
        told = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 202 " in told.split(b"\r\n")[0], told
        length = int(told.split(b"content-length:")[1].split(b"\r\n")[0])
        asked[json.loads(await reader.readexactly(length))["run"]["id"]] = begun
    writer.close()
    return asked


async def newest():
    """The number of the newest event, once the launched runs have come to rest."""
    last = -1
    while True:
        reader, writer = await asyncio.open_connection(AT.hostname, AT.port)
        writer.write(head("GET", "/v1/events/newest", "connection: close\r\n"))
        told = json.loads((await reader.read()).split(b"\r\n\r\n", 1)[1])["newest"]
        writer.close()
        if told == last:
            return told
        last = told
        await asyncio.sleep(0.5)


async def main(monitors, launches):
    opened = asyncio.Semaphore(0)
    first = await newest()
    seen = [[] for _ in range(monitors)]
    tasks = [asyncio.create_task(monitor(opened, each)) for each in seen]
    for _ in tasks:
        await asyncio.wait_for(opened.acquire(), PATIENCE)
    begun = time.perf_counter()
    asked = await launch(launches)
    last = await newest()
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end and any(not each or each[-1][0] < last for each in seen):
        await asyncio.sleep(0.05)
    lost = sum(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    told = sum(map(len, seen))
    took = max(each[-1][2] for each in seen if each) - begun
    delays = []
    for each in seen:
        met = set()
        for _, run, when in each:
            if run in asked and run not in met:
                met.add(run)
                delays.append((when - asked[run]) * 1000)
    delays.sort()
    expected = list(range(first + 1, last + 1))
    wrong = sum([number for number, *_ in each] != expected for each in seen)
    print(
        f"{told / took:.0f} {delays[len(delays) // 2]:.2f} {delays[len(delays) * 99 // 100]:.2f} "
        f"{wrong} of {monitors} monitors, {lost} lost, {last - first} events each"
    )


AT = urlsplit(sys.argv[1])
asyncio.run(main(int(sys.argv[2]), int(sys.argv[3])))
