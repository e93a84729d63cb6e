"""The workload of benches/throughput.rs with LangGraph and DBOS: five trivial steps, each durable before the next.

Set up:    python3 -m venv /tmp/peers
           /tmp/peers/bin/pip install langgraph langgraph-checkpoint-sqlite langgraph-checkpoint-postgres \\
               'psycopg[binary,pool]' dbos
Measure:   PEERS=/tmp/peers/bin/python3 cargo bench --bench throughput

The bench starts this script, reads the names of its rows, and then writes ROW,CONCURRENCY,MILLISECONDS for each slice; the
answer is the number of runs and the seconds that they took. By hand: `echo 'DBOS/SQLite,1,1000' | python3
throughput.py --folder /var/tmp`.

What is durable, and how it is set up, each as its documentation advises for production:

LangGraph   A thread per run, five nodes in a row. `durability="sync"`: the checkpoint of a step is written before the next
            step starts (https://reference.langchain.com/python/langgraph/types/Durability), in addition to the writes of
            each node and the input. SQLite: `SqliteSaver`, one connection with a lock, WAL, synchronous=FULL (the default
            of SQLite). PostgreSQL: `PostgresSaver` with a pool of 16 connections in autocommit mode.
DBOS        A workflow per run, five steps: its input, the output of each step, and its output are recorded
            (https://docs.dbos.dev/explanations/how-workflows-work). A step is not announced before it starts. Its system
            database is the same PostgreSQL server, or SQLite in a file with the settings that the library chooses.

Concurrent runs are threads of this process, so that Python limits them to one core.
"""

import argparse
import contextlib
import logging
import pathlib
import sqlite3
import sys
import time
import typing
import urllib.parse
import uuid
from concurrent.futures import ThreadPoolExecutor

STEPS = 5
POOL = 16


def langgraph(saver):
    from langgraph.graph import END, START, StateGraph

    class State(typing.TypedDict):
        n: int

    graph = StateGraph(State)
    names = [f"step{n}" for n in range(STEPS)]
    for name in names:
        graph.add_node(name, lambda state: {"n": state["n"]})
    for before, after in zip([START, *names], [*names, END]):
        graph.add_edge(before, after)
    compiled = graph.compile(checkpointer=saver)

    def run():
        config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        assert compiled.invoke({"n": 1}, config, durability="sync") == {"n": 1}

    return run


def langgraph_sqlite(folder, stack):
    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(folder / "langgraph.db", check_same_thread=False)
    stack.callback(connection.close)
    saver = SqliteSaver(connection)
    saver.setup()
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "synchronous=FULL"
    return langgraph(saver)


def langgraph_postgres(address, stack):
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    # As PostgresSaver.from_conn_string sets its connection up.
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool = ConnectionPool(address, min_size=POOL, max_size=POOL, kwargs=settings, open=True)
    stack.callback(pool.close)
    saver = PostgresSaver(pool)
    saver.setup()
    return langgraph(saver)


def dbos(database, stack):
    from dbos import DBOS

    @DBOS.step()
    def step(n: int) -> int:
        return n

    @DBOS.workflow()
    def workflow(n: int) -> int:
        for _ in range(STEPS):
            n = step(n)
        return n

    DBOS(config={"name": "throughput", "system_database_url": database, "log_level": "ERROR"})
    DBOS.launch()
    stack.callback(DBOS.destroy)

    def run():
        assert workflow(1) == 1

    return run


def of_sqlalchemy(address):
    """SQLAlchemy does not decode a socket in place of the host."""
    parts = urllib.parse.urlsplit(address)
    user, _, host = parts.netloc.rpartition("@")
    query = urllib.parse.parse_qsl(parts.query)
    if host.startswith("%2F"):
        query.append(("host", urllib.parse.unquote(host)))
        host = ""
    netloc = f"{user}@{host}" if user else host
    return urllib.parse.urlunsplit(("postgresql", netloc, parts.path, urllib.parse.urlencode(query), ""))


def slice_of(run, threads, milliseconds):
    began = time.perf_counter()

    def loop(_):
        runs = 0
        while time.perf_counter() - began < milliseconds / 1000:
            run()
            runs += 1
        return runs

    with ThreadPoolExecutor(threads) as pool:
        runs = sum(pool.map(loop, range(threads)))
    return runs, time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="folder for the SQLite files")
    parser.add_argument("--postgres", help="address of a PostgreSQL server")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    with contextlib.ExitStack() as stack:
        rows = {"LangGraph/SQLite": langgraph_sqlite(arguments.folder, stack)}
        if arguments.postgres:
            rows["LangGraph/PostgreSQL"] = langgraph_postgres(arguments.postgres, stack)
            rows["DBOS/PostgreSQL"] = dbos(of_sqlalchemy(arguments.postgres), stack)
        else:
            # A process has one instance of DBOS.
            rows["DBOS/SQLite"] = dbos(f"sqlite:///{arguments.folder / 'dbos.db'}", stack)
        print(",".join(rows), flush=True)
        for line in sys.stdin:
            name, threads, milliseconds = line.strip().split(",")
            print(*slice_of(rows[name], int(threads), int(milliseconds)), flush=True)


if __name__ == "__main__":
    main()
