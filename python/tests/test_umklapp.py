"""The package against NumPy: values there and back, errors, interruptions, memory, output."""

import copy
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import umklapp


@pytest.fixture
def s():
    return umklapp.Session(backend="cpu", threads=1)


def there_and_back(s, value):
    s["x"] = value
    return s["x"]


def test_plain_values_come_back(s):
    values = [None, True, 0, -(2**63), 2**63 - 1, 1.5, float("inf"), 2 - 3j, "", "µ\n"]
    values += [[], [1, [2.0, "x"]], {}, {"a": {"b": None}}]
    for value in [*values, range(2, 5)]:
        back = there_and_back(s, value)
        assert back == value and type(back) is type(value)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_arrays_come_back(s, order):
    for dtype in ["f2", "f4", "f8", ">f8", "i1", "i8", "u8", "?", "c8", ">c16"]:
        for shape in [(0,), (1,), (5,), (2, 3), (3, 1), (0, 3)]:
            n = int(np.prod(shape))
            given = np.arange(n) * (1 - 0.5j if "c" in dtype else 1)
            given = given.reshape(shape).astype(dtype, order="F" if order == "F" else "C")
            if order == "strided":
                given = np.repeat(given, 2, axis=0)[::2][::-1]
            back = there_and_back(s, given)
            assert back.dtype == (np.complex128 if "c" in dtype else np.float64) and back.flags.c_contiguous
            assert back.shape == given.shape
            np.testing.assert_array_equal(back, given)
            # An element, asked for in the language.
            if n and len(shape) == 2:
                assert s.eval(f"x.at({shape[0] - 1}, 0)") == given[-1, 0]


def test_numbers_of_numpy(s):
    scalars = (np.float32(0.5), np.int8(-3), np.bool_(True), np.complex64(1j), np.array(2.5))
    assert [there_and_back(s, x) for x in scalars] == [
        0.5, -3, True, 1j, 2.5]  # fmt: skip
    assert there_and_back(s, np.array(["a", "bc"])) == ["a", "bc"]


def test_products_agree_with_numpy(s):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 5)) + 1j * rng.normal(size=(3, 5))
    s["a"], s["b"] = a, np.asfortranarray(b)
    np.testing.assert_allclose(s.eval("a * b"), a @ b, rtol=1e-14)
    h = b.T.conj() @ b
    s["h"] = h
    np.testing.assert_allclose(s.eval("h.eigvals()"), np.linalg.eigvalsh(h), atol=1e-12)


def test_results_are_moved_and_shared_ones_are_kept(s):
    own = s.eval("linspace(0, 1, 5)")
    own[0] = 7.0
    matrix = s.eval("identity(3)")
    matrix[0, 0] = 7.0
    s.eval("let m = identity(300); let t = table([['x', [1, 2]]]);".replace("'", '"'))
    m, x = s["m"], s["t"]["x"]
    assert not m.flags.writeable and not x.flags.writeable
    # The session may change or forget its values: arrays keep what they look at.
    s.eval("m[[0, 0]] = 5.0; t.x = [8, 9];")
    assert s["m"][0, 0] == 5.0 and s["t"].x[0] == 8.0
    del s["m"], s["t"], s
    gc.collect()
    assert m[0, 0] == 1.0 and m.sum() == 300.0 and list(x) == [1.0, 2.0]


def test_tables(s):
    t = s.eval('table([["name", ["a", "b"]], ["z", [1, I]], ["x", [1, 2]]])')
    assert list(t) == t.keys() == ["name", "z", "x"] and len(t) == 3 and t.rows == 2
    assert t["name"].tolist() == ["a", "b"] and t.z.dtype == complex and "x" in t and "y" not in t
    np.testing.assert_array_equal(dict(t)["x"], [1, 2])
    with pytest.raises(KeyError, match="did you mean `name`"):
        t["nam"]
    with pytest.raises(AttributeError):
        t.nam
    again = there_and_back(s, t)
    assert again == t and copy.deepcopy(t) == t and pickle.loads(pickle.dumps(t)) == t
    assert "<table" in t._repr_html_() and "name" in repr(t)
    given = umklapp.Table({"x": [1, 2, 3], "y": np.arange(3) * 1j}, title="mine")
    s["g"] = given
    assert s.eval("g.y.im.sum()") == 3.0 and s["g"].title == "mine"
    with pytest.raises(ValueError, match="`y` has 2 rows, column `x` has 1 .*one length"):
        umklapp.Table({"x": [1], "y": [1, 2]})
    with pytest.raises(ValueError, match="2 dimensions"):
        umklapp.Table({"x": np.eye(2)})


def test_frames_of_pandas(s):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0], "n": [1, 2], "name": ["a", "b"]})
    s["f"], s["c"] = frame, frame["x"]
    assert s.eval("f.name[1]") == "b" and s.eval("c.sum()") == 3.0
    back = s["f"].to_pandas()
    assert list(back.columns) == ["x", "n", "name"] and back["n"].tolist() == [1.0, 2.0]
    s.eval("let h = tight_binding(lattice::chain(8))")
    dos = s.eval("kpm::dos(h, #{ moments: 16, vectors: 2, progress: false })").to_pandas()
    assert dos.attrs["moments"] == 16


def test_handles(s):
    h = s.eval("tight_binding(lattice::chain(6), #{ hopping: -1.0 })")
    assert "6 x 6" in repr(h) and h.__kind__ == "Operator"
    ring = -(np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0))
    np.testing.assert_array_equal(np.asarray(h), ring)
    np.testing.assert_array_equal(h.to_matrix(), ring)
    v = s.call("block", h, np.arange(6.0))
    s["h"], s["v"] = h, v
    np.testing.assert_array_equal(np.asarray(s.eval("h * v")), ring @ np.arange(6.0)[:, None])
    assert h.dim == 6 and np.asarray(v, dtype=complex).dtype == complex
    with pytest.raises(AttributeError, match="did you mean"):
        h.dimm
    with pytest.raises(TypeError, match="no function"):
        h()
    assert s.eval("|x| x + 1")(2) == 3
    # A method changes what it stands behind.
    m = s.eval("model(lattice::chain(4), 1)")
    m.nearest(-2.0)
    assert np.asarray(m.build())[0, 1] == -2.0
    with pytest.raises(ValueError, match="another session"):
        umklapp.Session(backend="cpu")["x"] = h


def test_calls_with_options(s):
    h = s.eval("tight_binding(lattice::square(8, 8))")
    by_call = s.call("kpm::dos", h, moments=32, vectors=2, seed=3, progress=False)
    s["h"] = h
    by_text = s.eval("kpm::dos(h, #{ moments: 32, vectors: 2, seed: 3, progress: false })")
    np.testing.assert_array_equal(by_call.density, by_text.density)
    assert abs(np.trapezoid(by_call.density, by_call.energy) - 1) < 0.05
    with pytest.raises(umklapp.InputError, match="unknown option `momnets`"):
        s.call("kpm::dos", h, momnets=32)
    with pytest.raises(umklapp.InputError, match="no name"):
        s.call("print(1); print", 2)
    # Options may be called as parameters of Python's are.
    g = s.eval("let g = model(lattice::honeycomb(1, 1)); g.nearest(-1.0); g")
    corners = [["G", [0.0, 0.0]], ["K", [1 / 3, 2 / 3]]]
    assert "k" in s.call("bands", g, path=corners) and "k" in g.bands(path=corners)
    del s["g"]
    assert list(s) == ["h"]


def test_variables(s):
    s["x"], s["y"] = 1, 2
    assert list(s) == ["x", "y"] and "x" in s and len(s) == 2
    del s["x"]
    assert s.keys() == ["y"]
    with pytest.raises(KeyError):
        s["x"]
    with pytest.raises(KeyError):
        del s["x"]
    with pytest.raises(umklapp.InputError, match="constant"):
        s["PI"] = 3
    with pytest.raises(umklapp.InputError, match="no name"):
        s["a b"] = 3
    s["x"] = "now a text"
    assert s.eval("x") == "now a text"


@pytest.mark.parametrize(
    "value, error, words",
    [
        (np.zeros((2, 2, 2)), ValueError, "3 dimensions"),
        (2**63, OverflowError, "64 bits"),
        (object(), TypeError, "nothing like `object`"),
        ({1: 2}, TypeError, "keys of a map"),
        (np.array([object()]), TypeError, "type `object`"),
        (np.array(["2020-01-01"], dtype="M8[D]"), TypeError, "datetime64"),
    ],
)
def test_what_scripts_do_not_have(s, value, error, words):
    with pytest.raises(error, match=words):
        s["x"] = value


def test_a_list_in_itself(s):
    ring = []
    ring.append(ring)
    with pytest.raises(ValueError, match="deep in one another"):
        s["x"] = ring
    s.eval("let a = []; for i in 0..300 { a = [a]; }")
    with pytest.raises(umklapp.InputError, match="deep in one another"):
        s["a"]


def test_errors_tell_where(s, tmp_path):
    script = tmp_path / "wrong.rhai"
    script.write_text("let x = 1;\nlet y = linspac(0, 1, 3);\n")
    with pytest.raises(umklapp.InputError) as caught:
        s.run(script)
    e = caught.value
    assert (e.line, e.column) == (2, 9) and e.file == str(script) and "linspace" in e.hint
    assert "^" in str(e) and "no function" in e.message and isinstance(e, (umklapp.Error, ValueError))
    assert s["x"] == 1, "what ran before stays"
    with pytest.raises(umklapp.FileError) as caught:
        s.run(tmp_path / "none.rhai")
    assert isinstance(caught.value, OSError)
    with pytest.raises(umklapp.Exit) as caught:
        s.eval("exit(3)")
    assert caught.value.code == 3 and s.eval("exit()") is None and s.eval("1 + 1") == 2


def test_run(tmp_path, capsys):
    script = tmp_path / "script.rhai"
    script.write_text("print(`n = ${args.n}`);\nargs.x * args.n")
    out = umklapp.run(script, set={"n": 3, "x": np.arange(3.0)}, backend="cpu")
    np.testing.assert_array_equal(out, [0.0, 3.0, 6.0])
    assert capsys.readouterr().out == "n = 3\n"
    assert umklapp.run(source="args.a", set={"a": [1, 2]}) == [1, 2]
    seeded = umklapp.run(source="random_numbers(1)[0]", seed=1)
    assert umklapp.run(source="set_seed(1); random_numbers(1)[0]", quiet=True) == seeded
    s = umklapp.Session()
    assert s.run(script, set={"n": 2, "x": 1.5}) == 3.0
    for wrong in ({}, {"file": script, "source": "1"}):
        with pytest.raises(TypeError, match="one of them"):
            umklapp.run(**wrong)
    with pytest.raises(umklapp.BackendError, match="no backend"):
        umklapp.run(source="1", backend="gpu")


def test_files_go_to_out(tmp_path):
    s = umklapp.Session(out=tmp_path / "results", quiet=True)
    s.eval('table([["x", [1, 2]]]).save("t.npz"); plot(series([1, 2]), #{ file: "p.svg" });')
    assert sorted(os.listdir(tmp_path / "results")) == ["p.svg", "t.npz"]
    np.testing.assert_array_equal(np.load(tmp_path / "results/t.npz")["x"], [1, 2])


def test_arrays_of_numpy_are_read(s, tmp_path):
    a = np.arange(6.0).reshape(2, 3)
    cases = {
        "f4": a.astype("f4"), "f8be": a.astype(">f8"),
        "c8": (a + 1j * a).astype("c8"), "c16be": (a - 1j * a).astype(">c16"),
        "i1": a.astype("i1"), "u8be": a.astype(">u8"), "bool": a > 2, "fortran": np.asfortranarray(a),
        "fortran_complex": np.asfortranarray(a + 1j * a), "empty": np.zeros((0, 3)), "line": a[0],
    }  # fmt: skip
    for name, array in cases.items():
        np.save(tmp_path / name, array)
        s["file"] = str(tmp_path / f"{name}.npy")
        np.testing.assert_array_equal(s.eval("load(file)"), array, err_msg=name)
    s["file"] = str(tmp_path / "several.npz")
    np.savez(tmp_path / "several.npz", x=np.arange(3.0), m=cases["fortran"], z=2.5, i=1j, names=["a", "bc"])
    back = s.eval("load(file)")
    assert back["z"] == 2.5 and back["i"] == 1j and back["names"] == ["a", "bc"]
    np.testing.assert_array_equal(back["m"], a)
    np.savez_compressed(tmp_path / "several.npz", x=np.arange(3), y=["a", "b", "c"])
    assert s.eval("type_of(load(file))") == "Table"
    np.savez(tmp_path / "several.npz", x=np.arange(3), y=np.arange(4))
    assert s.eval("load(file).y.len") == 4
    np.savez(tmp_path / "several.npz", x=np.arange(3), cube=np.zeros((2, 2, 2)))
    with pytest.raises(umklapp.FileError, match="`cube`") as caught:
        s.eval("load(file)")
    assert "reshape" in caught.value.hint
    (tmp_path / "x.h5").write_bytes(b"")
    s["file"] = str(tmp_path / "x.h5")
    with pytest.raises(umklapp.Error, match="not a whole HDF5 file"):
        s.eval("load(file)")


def test_output_goes_to_python(s, capsys):
    s.eval('print("one"); print(2); note("aside");')
    seen = capsys.readouterr()
    assert seen.out == "one\n2\n" and seen.err == "note: aside\n"
    s.eval("plot(series([1, 2, 4]))")
    assert "there is none" in capsys.readouterr().err


def test_a_stream_that_fails_ends_the_script(s, monkeypatch):
    class Broken:
        def write(self, text):
            raise BrokenPipeError("nobody reads")

    monkeypatch.setattr(sys, "stdout", Broken())
    with pytest.raises(BrokenPipeError, match="nobody reads"):
        s.eval('while true { print("x"); }')
    monkeypatch.undo()
    assert s.eval("1") == 1


def interrupt_after(seconds):
    # A shell ignores the signal for what it runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


@pytest.mark.parametrize(
    "work", ["while true { n += 1; }", "n = 1; let m = identity(3000); while true { m.eigvals(); }"]
)
def test_ctrl_c(s, work):
    s.eval("let n = 0;")
    began = time.monotonic()
    interrupt_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        s.eval(work)
    assert time.monotonic() - began < 5.0
    assert s["n"] > 0, "variables stay"


def test_interrupt_from_a_thread(s):
    threading.Timer(0.2, s.interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        s.eval("while true { }")


def test_other_threads_go_on(s):
    count = 0
    stop = threading.Event()

    def counting():
        nonlocal count
        while not stop.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=counting)
    thread.start()
    s.eval("let t = 0; for i in 0..3_000_000 { t += i; }")
    stop.set()
    thread.join()
    assert count > 20, "the interpreter was released"


def test_sessions_on_several_threads():
    found = {}

    def work(k):
        session = umklapp.Session(seed=k)
        found[k] = session.eval("random_numbers(3)").tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len({tuple(x) for x in found.values()}) == 4
    assert found[2] == umklapp.run(source="random_numbers(3)", seed=2).tolist()
    s = umklapp.Session()
    results = []
    threads = [threading.Thread(target=lambda k=k: results.append(s.eval(f"{k} * {k}"))) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(results) == [k * k for k in range(8)]


def alone(code):
    """Runs code in a Python of its own."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)


def test_what_there_is_no_memory_for_is_an_exception():
    done = alone(
        """
        import resource, umklapp
        s = umklapp.Session(backend="cpu", threads=1)
        s.eval("1")
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        for text in ["linspace(0, 1, 1_000_000_000_000)", "let a = []; a.pad(300_000_000, 1); a.len",
                     "let t = 'x'; loop { t += t; }",
                     "zeros(40_000, 40_000) + 1.0"]:
            try:
                print(s.eval(text.replace("'", '"')))
            except MemoryError as e:
                print(type(e).__name__, e.message)
        print(s.eval("1 + 1"))
        """
    )
    assert done.returncode == 0, done
    assert done.stdout.count("OutOfMemoryError") == 4 and done.stdout.endswith("\n2\n"), done


def test_the_interpreter_keeps_its_signals_and_its_exit():
    done = alone(
        """
        import signal, os, atexit
        before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGABRT)]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        import umklapp
        s = umklapp.Session()
        s.eval("let x = 1;")
        assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGABRT)] == before
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask
        caught = []
        signal.signal(signal.SIGTERM, lambda *_: caught.append(1))
        os.kill(os.getpid(), signal.SIGTERM)
        s.eval("2")
        assert caught == [1]
        atexit.register(print, "the end")
        """
    )
    assert (done.returncode, done.stdout) == (0, "the end\n"), done
    aborted = alone("import umklapp, os; os.abort()")
    assert aborted.returncode == -signal.SIGABRT


def test_a_deep_value_does_not_end_the_interpreter(s):
    s.eval("let a = []; for i in 0..3_000 { a = [a]; } a = ();")
    with pytest.raises(umklapp.InputError, match="too deeply"):
        s.eval("fn f(n) { f(n + 1) } f(0)")


def test_a_fork_says_what_to_do():
    done = alone(
        """
        import os, umklapp
        s = umklapp.Session()
        if os.fork() == 0:
            for work in (lambda: s.eval("1"), umklapp.Session):
                try:
                    work()
                except RuntimeError as e:
                    assert "spawn" in str(e)
                else:
                    os._exit(1)
            os._exit(0)
        print(os.wait()[1], s.eval("1"))
        """
    )
    assert done.stdout == "0 1\n", done


def test_nothing_leaks(s):
    import resource

    s.eval("let m = zeros(500, 500);")

    def round_trips(n):
        for _ in range(n):
            s["x"] = s.eval("m + m")
            s.eval("tight_binding(lattice::square(100, 100))")
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = round_trips(20)
    assert round_trips(100) - before < 60_000, "kilobytes"


def test_it_knows_its_version():
    from importlib.metadata import metadata

    about = metadata("umklapp")
    assert about["Version"] == umklapp.__version__
    assert about["License-Expression"] == "MIT OR Apache-2.0"


def test_hdf5_goes_both_ways(s, tmp_path):
    h5py = pytest.importorskip("h5py")
    s["here"] = str(tmp_path) + "/"
    s.eval("""
        table([["x", [1.0, 0.0 / 0.0]], ["z", [1.0 + 2.0 * I, 0.5 * I]], ["t", ["", "\u00fc"]]]).save(here + "t.h5");
        matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).save(here + "m.hdf5");
        series([]).save(here + "none.h5");
    """)
    with h5py.File(tmp_path / "t.h5") as f:
        np.testing.assert_array_equal(f["x"], [1.0, np.nan])
        np.testing.assert_array_equal(f["z"], [1 + 2j, 0.5j])
        assert list(f["t"].asstr()) == ["", "\u00fc"]
        assert json.loads(f["manifest.json"][0])["names"] == ["x", "z", "t"]
    with h5py.File(tmp_path / "m.hdf5") as f:
        np.testing.assert_array_equal(f["matrix"], [[1, 2, 3], [4, 5, 6]])
    with h5py.File(tmp_path / "none.h5") as f:
        assert f["series"].shape == (0,)
    with h5py.File(tmp_path / "theirs.h5", "w") as f:
        f["group/m"] = np.arange(6.0).reshape(2, 3)
        f["n"] = 3.5
        f["z"] = np.array([1 + 2j], dtype="c8")
        f["texts"] = ["x", "yy"]
        f["big_endian"] = np.arange(3, dtype=">i4")
        packed = dict(chunks=(16, 16), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("packed", data=np.arange(1e4).reshape(100, 100), **packed)
    s.eval('let x = load(here + "theirs.h5");')
    found = s["x"]
    np.testing.assert_array_equal(found["group/m"], np.arange(6.0).reshape(2, 3))
    assert found["n"] == 3.5 and found["texts"] == ["x", "yy"]
    np.testing.assert_array_equal(found["z"], [1 + 2j])
    np.testing.assert_array_equal(found["big_endian"], [0, 1, 2])
    np.testing.assert_array_equal(found["packed"], np.arange(1e4).reshape(100, 100))
    with h5py.File(tmp_path / "kinds.h5", "w") as f:
        f["truths"] = np.array([True, False])
        f["truth"] = np.bool_(True)
        f["halves"] = np.array([1.5, -np.inf, 2.0**-24], dtype="f2")
        f["big"] = np.array([1 + 2j, 3 - 4j], dtype=">c16")
        f["records"] = np.zeros(2, dtype=[("a", "f8"), ("b", "i4"), ("c", "i4")])
        f["link"] = np.array([f["big"].ref], dtype=h5py.ref_dtype)
        f["inner/own/x"] = [1.0]
        f["inner/itself"] = f["inner"]
        f["inner/own/top"] = f["/"]
    s.eval('let x = load(here + "kinds.h5");')
    found = s["x"]
    assert sorted(found) == ["big", "halves", "inner/own/x", "truth", "truths"]
    np.testing.assert_array_equal(found["truths"], [1, 0])
    np.testing.assert_array_equal(found["halves"], [1.5, -np.inf, 2.0**-24])
    np.testing.assert_array_equal(found["big"], [1 + 2j, 3 - 4j])
    with h5py.File(tmp_path / "records.h5", "w") as f:
        f["records"] = np.zeros(2, dtype=[("a", "f8"), ("b", "i4"), ("c", "i4")])
    with pytest.raises(umklapp.FileError, match="dataset `records`: records with several fields"):
        s.eval('load(here + "records.h5")')
    # Another program that changes a number breaks the check.
    with h5py.File(tmp_path / "t.h5", "r+") as f:
        f["x"][0] = 7.0
    with pytest.raises(umklapp.FileError, match="damaged"):
        s.eval('load(here + "t.h5")')


def test_maps_are_read_by_others(s, tmp_path):
    s["here"] = str(tmp_path) + "/"
    s.eval("""
        let found = #{
            U: 4.0, sweeps: 7, done: true, gap: 1.0 + 2.0 * I, name: "ring", levels: series([-1.5, 0.5]),
            m: matrix([[1.0, 2.0], [3.0, 4.0]]), t: table([["x", [1, 2]], ["way", ["csr", "ell"]]]),
            fit: #{ counts: [1, 2, 3], names: ["a", "b\u00fc"] },
        };
        for kind in ["json", "npz", "h5"] { found.save(here + "found." + kind); }
    """)
    with np.load(tmp_path / "found.npz") as f:
        assert f["U"] == 4.0 and f["sweeps"].dtype == np.int64 and f["done"].dtype == bool and f["gap"] == 1 + 2j
        assert f["name"] == "ring" and list(f["fit/names"]) == ["a", "b\u00fc"]
        np.testing.assert_array_equal(f["levels"], [-1.5, 0.5])
        np.testing.assert_array_equal(f["m"], [[1, 2], [3, 4]])
        assert list(f["t/way"]) == ["csr", "ell"] and f["fit/counts"].dtype == np.int64
    with open(tmp_path / "found.json") as f:
        values = json.load(f)["values"]
    assert values["U"] == 4.0 and values["levels"] == [-1.5, 0.5] and values["fit"]["counts"] == [1, 2, 3]
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "found.h5") as f:
        assert f["U"][()] == 4.0 and f["done"][()] == np.True_ and f["gap"][()] == 1 + 2j
        assert f["name"].asstr()[()] == "ring" and list(f["fit"]["names"].asstr()) == ["a", "b\u00fc"]
        np.testing.assert_array_equal(f["t/x"], [1, 2])


@pytest.mark.parametrize("name", ["let", "fn", "1x", "a b", "", "kpm::if"])
def test_what_is_no_name(s, name):
    with pytest.raises(umklapp.Error, match="is no name"):
        s[name] = 3
