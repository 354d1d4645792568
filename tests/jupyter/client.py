"""The kernel as Jupyter's own client sees it: started, asked, interrupted, restarted; notebooks of the gallery by nbclient,
where it is installed."""

import base64
import pathlib
import sys

from jupyter_client import KernelManager

TIMEOUT = 120


def run(client, code, **more):
    """The reply to a cell, and all that it has shown."""
    shown = []
    reply = client.execute_interactive(
        code, timeout=TIMEOUT, output_hook=lambda m: shown.append((m["msg_type"], m["content"])), **more
    )
    return reply["content"], shown


def answer(client, identity):
    """The reply to a request."""
    while True:
        reply = client.get_shell_msg(timeout=TIMEOUT)
        if reply["parent_header"]["msg_id"] == identity:
            return reply["content"]


def of(shown, kind):
    return [content for k, content in shown if k == kind]


def kernel():
    manager = KernelManager(kernel_name="umklapp")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=TIMEOUT)
    return manager, client


def check_cells(client):
    reply, shown = run(client, "print(\"µ\"); 6 * 7")
    assert reply["status"] == "ok", reply
    assert of(shown, "stream")[0] == {"name": "stdout", "text": "µ\n"}, shown
    assert of(shown, "execute_result")[0]["data"]["text/plain"] == "42", shown
    reply, shown = run(client, "plot(linspace(0, 1, 9))")
    data = of(shown, "display_data")[0]["data"]
    assert "<svg" in data["image/svg+xml"]
    assert base64.b64decode(data["image/png"], validate=True).startswith(b"\x89PNG\r\n")
    reply, shown = run(client, "table([[\"x\", [1.0]]])")
    assert "<table>" in of(shown, "execute_result")[0]["data"]["text/html"]
    reply, shown = run(client, "1 +* 2")
    assert reply["status"] == "error" and "^" in "".join(of(shown, "error")[0]["traceback"])
    reply = client.complete("linsp", reply=True, timeout=TIMEOUT)["content"]
    assert reply["matches"] == ["linspace("] and reply["cursor_start"] == 0, reply
    reply = client.inspect("linspace", reply=True, timeout=TIMEOUT)["content"]
    assert reply["found"], reply
    identity = client.is_complete("fn f(x) {")
    reply = answer(client, identity)
    assert reply == {"status": "incomplete", "indent": "    "}, reply
    reply = client.history(hist_access_type="tail", n=1, reply=True, timeout=TIMEOUT)["content"]
    assert reply["history"][-1][2] == "1 +* 2", reply
    assert client.hb_channel.is_beating()


def check_interruption(manager, client):
    identity = client.execute("print(\"begun\"); loop { }")
    while True:
        message = client.get_iopub_msg(timeout=TIMEOUT)
        if message["msg_type"] == "stream" and message["parent_header"]["msg_id"] == identity:
            break
    manager.interrupt_kernel()
    reply = answer(client, identity)
    assert reply["ename"] == "Interrupted", reply


def check_restart(manager, client):
    run(client, "let kept = 1;")
    manager.restart_kernel()
    client.wait_for_ready(timeout=TIMEOUT)
    reply, _ = run(client, "kept")
    assert reply["status"] == "error", reply


def check_gallery(folder):
    try:
        import nbformat
        from nbclient import NotebookClient
    except ImportError:
        print("skipped: no nbclient")
        return
    for path in sorted(pathlib.Path(folder).glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        NotebookClient(notebook, timeout=600, kernel_name="umklapp").execute()
        print("ran", path.name)


def main():
    manager, client = kernel()
    other, beside = kernel()
    try:
        check_cells(client)
        check_interruption(manager, client)
        check_restart(manager, client)
        assert run(beside, "2 + 2")[0]["status"] == "ok"
    finally:
        for m, c in [(manager, client), (other, beside)]:
            c.stop_channels()
            m.shutdown_kernel()
    check_gallery(sys.argv[1])
    print("done")


main()
