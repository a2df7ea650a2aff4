"""How fast the links of a virtual cluster are, measured between two of its nodes."""

from __future__ import annotations

from clusters import VirtualCluster, eventually

# Sends bytes, or bounces messages, between two nodes over TCP.
PROBE = """
import socket, sys, time
role, address = sys.argv[1:3]
whole = socket.MSG_WAITALL
if role == "serve":
    listener = socket.create_server((address, 5001))
    print("ready", flush=True)
    connection = listener.accept()[0]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if connection.recv(1) == b"r":
        while connection.recv(65536): pass
        connection.close()
    else:
        size = int(connection.recv(8, whole))
        while message := connection.recv(size, whole): connection.sendall(message)
else:
    connection = socket.create_connection((address, 5001))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    amount, size = map(int, sys.argv[3:5])
    start = time.perf_counter()
    if role == "rate":
        connection.sendall(b"r" + bytes(amount))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        print(8 * amount / (time.perf_counter() - start))
    else:
        connection.sendall(b"l%8d" % size)
        times = []
        for _ in range(amount):
            start = time.perf_counter()
            connection.sendall(bytes(size))
            connection.recv(size, whole)
            times.append(time.perf_counter() - start)
        print(min(times))
"""


def probe(cluster: VirtualCluster, role: str, link: str, amount: int, size: int = 1) -> float:
    """Measure from n2 to n1: ``rate`` in bit/s of this many bytes, or ``latency`` in s.

    The latter is the least time in which one of this many messages of this size came back.
    """
    # n1's, on the interface that has the link's name.
    shown = cluster.node_run("n1", "ip", "-4", "-br", "address", "show", link).stdout
    address = shown.split()[2].split("/")[0]
    server = cluster.popen("python3", "-c", PROBE, "serve", address, node="n1")
    assert server.stdout is not None
    try:
        assert server.stdout.readline() == "ready\n"
        argv = ["python3", "-c", PROBE, role, address, str(amount), str(size)]
        return float(cluster.node_run("n2", *argv).stdout)
    finally:
        server.kill()
        server.communicate()


def reaches(cluster: VirtualCluster, link: str, amount: int, low: float, high: float) -> None:
    """Check that a link never gives more than `high` bit/s, and that it gives `low`.

    A neighbour's load may slow one measurement down; none may make it too fast.
    """

    def look() -> bool:
        rate = probe(cluster, "rate", link, amount)
        assert rate < high
        return rate > low

    eventually(look, what=f"{low:g} bit/s over {link}")


def answers(cluster: VirtualCluster, link: str, amount: int, low: float, high: float, size: int = 1) -> None:
    """Check that no message comes back before `low` s, and one before `high`."""

    def look() -> bool:
        took = probe(cluster, "latency", link, amount, size)
        assert took >= low
        return took < high

    eventually(look, what=f"a message over {link} within {high:g} s")
