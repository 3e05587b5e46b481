"""Files and folders appear whole or not at all, and in place of nothing."""

import errno
import fcntl
import multiprocessing
import os
import re
import resource
import stat

import pytest

from data_prep.jobs.locks import LOCK_FILE, exclusive
from data_prep.jobs.outputs import check_outputs
from official_bert.common import files, system
from official_bert.common.checksums import sha256_file, state
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, atomic_write, write_text


@pytest.fixture(params=[True, False], ids=["renameat2", "older systems"])
def both_systems(request, monkeypatch):
    """Run once with a system that renames without replacing and once with one that cannot."""
    if not request.param:
        monkeypatch.setattr(system, "_renameat2", lambda: None)


def listed(folder):
    return sorted(os.listdir(folder))


def test_a_file_that_is_too_large_for_the_system(tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        told = pytest.raises(UserError, match=r"file: cannot be written \(File too large\)")
        with told, atomic_write(tmp_path / "file") as file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
            file.write("x" * 1001)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert os.listdir(tmp_path) == []


def test_the_state_of_a_file_tells_another_of_the_same_time_and_size(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        path.write_text(path.name[:3])
        os.utime(path, (0, 0))
    before = state(one)
    assert before == state(one) != state(other)
    one.write_text("two")
    os.utime(one, (0, 0))
    assert state(one) != before


def test_a_file_appears_only_when_complete(tmp_path, both_systems):
    path = tmp_path / "deep" / "file.txt"
    with atomic_write(path) as file:
        file.write("ä\n")
        assert not path.exists()
    assert path.read_bytes() == "ä\n".encode()
    assert listed(path.parent) == ["file.txt"]
    write_text(path, "again", own=True)
    assert path.read_text() == "again" and listed(path.parent) == ["file.txt"]


@pytest.mark.parametrize("error", [RuntimeError(), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "file.txt"
    write_text(path, "old")
    for option in ("overwrite", "own"):
        with pytest.raises(type(error)), atomic_write(path, **{option: True}) as file:
            file.write("half")
            raise error
        assert path.read_text() == "old" and listed(tmp_path) == ["file.txt"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("RESOURCE_EXHAUSTED: model; No space left on device"),
        OSError("Can't write data (file write failed: errno = 28, error message = 'No space')"),
    ],
)
def test_a_full_disk_is_said_in_one_sentence(tmp_path, error):
    with pytest.raises(UserError, match="disk is full"), atomic_write(tmp_path / "file"):
        raise error
    with pytest.raises(UserError, match="disk is full"), atomic_folder(tmp_path / "folder"):
        raise error
    assert listed(tmp_path) == []


def test_a_folder_that_will_not_fit_is_not_begun(tmp_path, monkeypatch):
    def full(handle, offset, size):
        assert size == 10**6
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(UserError, match="disk is full"), atomic_folder(tmp_path / "m", size=10**6):
        pytest.fail("the block was begun")
    assert listed(tmp_path) == []


def test_what_stands_there_is_refused_or_renamed(tmp_path, both_systems, capsys):
    for number, content in enumerate(("one", "two", "three")):
        write_text(tmp_path / "file", content, overwrite=number > 0)
        with atomic_folder(tmp_path / "model", overwrite=number > 0) as temporary:
            (temporary / "deep").mkdir()
            (temporary / "deep" / "file").write_text(content)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"{tmp_path / 'file'} is renamed to file.~1~" and len(told) == 4
    names = ["file", "file.~1~", "file.~2~", "model", "model.~1~", "model.~2~"]
    assert listed(tmp_path) == names
    for name, content in zip(("", ".~1~", ".~2~"), ("three", "one", "two"), strict=True):
        assert (tmp_path / f"file{name}").read_text() == content
        assert (tmp_path / f"model{name}" / "deep" / "file").read_text() == content
    told = "exists already; choose another name or pass --overwrite, which renames it to"
    with pytest.raises(UserError, match=f"file {told} file.~3~"):
        write_text(tmp_path / "file", "four")
    with (
        pytest.raises(UserError, match=f"model {told} model.~3~"),
        atomic_folder(tmp_path / "model"),
    ):
        pytest.fail("the block was begun")
    assert listed(tmp_path) == names


@pytest.mark.parametrize("kind", ["file", "empty file", "link", "lost link", "loop", "folder"])
def test_whatever_stands_there_is_kept(tmp_path, both_systems, kind):
    path, mine = tmp_path / "out", tmp_path / "mine"
    mine.write_text("mine")
    if kind == "folder":
        path.mkdir()
        (path / "diary").write_text("mine")
    elif kind.endswith("file"):
        path.write_text("mine" if kind == "file" else "")
    else:
        path.symlink_to({"link": mine, "lost link": "nowhere", "loop": "out"}[kind])
    before = os.lstat(path)
    for write in (write_text, lambda path, text: check_outputs(outputs=[path])):
        with pytest.raises(UserError, match=r"out exists already"):
            write(path, "new")
    with pytest.raises(UserError, match="out exists already"), atomic_folder(path):
        pass
    write_text(path, "ours", overwrite=True)
    assert path.read_text() == "ours" and not path.is_symlink()
    assert os.path.samestat(before, os.lstat(tmp_path / "out.~1~"))
    assert mine.read_text() == "mine" and listed(tmp_path) == ["mine", "out", "out.~1~"]


def test_in_a_folder_of_its_own_a_command_replaces_files_and_no_links(tmp_path, both_systems):
    for text in ("one", "two"):
        write_text(tmp_path / "results.json", text, own=True)
        with atomic_folder(tmp_path / "step-1", own=True) as folder:
            (folder / "state").write_text(text)
    assert (tmp_path / "results.json").read_text() == "two"
    assert (tmp_path / "step-1" / "state").read_text() == "two"
    assert listed(tmp_path) == ["results.json", "step-1"]
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to("mine")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "step-1"):
        with pytest.raises(UserError, match=f"{name} is in the way"):
            write_text(tmp_path / name, "new", own=True)
    with (
        pytest.raises(UserError, match="mine is in the way"),
        atomic_folder(tmp_path / "mine", own=True),
    ):
        pass
    for name in ("link", "pipe", "step-1"):
        with pytest.raises(UserError):
            files.appending(tmp_path / name)
    assert (tmp_path / "mine").read_text() == "mine" and len(listed(tmp_path)) == 5


def test_what_comes_meanwhile_stays(tmp_path, both_systems, monkeypatch):
    path, move = tmp_path / "file", system.rename_new

    def comes_at_the_last_moment(old, new):
        path.write_text("mine")
        move(old, new)

    for early in (True, False):
        if not early:
            monkeypatch.setattr(system, "rename_new", comes_at_the_last_moment)
        with pytest.raises(UserError, match="meanwhile|exists al"), atomic_write(path) as file:
            file.write("ours")
            if early:
                path.write_text("mine")
        assert path.read_text() == "mine" and listed(tmp_path) == ["file"]
        path.unlink()
    monkeypatch.setattr(system, "rename_new", move)
    path = tmp_path / "folder"
    with pytest.raises(UserError, match="exists already"), atomic_folder(path):
        path.mkdir()
        (path / "file").write_text("mine")
    assert os.listdir(path) == ["file"] and listed(tmp_path) == ["folder"]


def test_side_files_follow_the_rule(tmp_path):
    """A SQuAD file's n-best beside it: refused, or renamed, as the file that the user named."""
    (tmp_path / "nbest_out.json").write_text("mine")

    def write(overwrite):
        with files.beside(tmp_path / "out.json", overwrite) as made:
            for name in ("a.json", "nbest_out.json", "out.json"):
                made.with_name(name).write_text("ours")

    with pytest.raises(UserError, match="nbest_out.json exists already"):
        write(False)
    assert listed(tmp_path) == ["nbest_out.json"]  # nor is one of the others left behind
    assert (tmp_path / "nbest_out.json").read_text() == "mine"
    write(True)
    assert (tmp_path / "nbest_out.json").read_text() == "ours"
    assert (tmp_path / "nbest_out.json.~1~").read_text() == "mine"


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_folder_that_cannot_give_way_is_refused_before_the_work(tmp_path, monkeypatch, overwrite):
    """A container's volume is empty and mounted; a shell stays in the folder that it was in."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="^. is the folder"), atomic_folder(".", overwrite):
        pytest.fail("the work began")
    (tmp_path / "volume").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: path == tmp_path / "volume")
    with pytest.raises(UserError, match="volume is where a disk"), atomic_folder("volume"):
        pytest.fail("the work began")
    assert listed(tmp_path) == ["volume"]


def test_a_name_that_ends_in_dots_is_the_folder_it_leads_to(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    with atomic_folder(tmp_path / "deep" / "er" / "..", overwrite=True) as made:
        (made / "file").write_text("x")
    assert listed(tmp_path) == ["deep", "deep.~1~"] and listed(tmp_path / "deep") == ["file"]


def test_modes_are_kept_and_other_names_keep_their_file(tmp_path):
    path = tmp_path / "file"
    write_text(path, "one")
    os.chmod(path, 0o640)
    os.link(path, tmp_path / "other")
    write_text(path, "two", own=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (tmp_path / "other").read_text() == "one"
    write_text(path, "three", overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    (tmp_path / "folder").mkdir(0o700)
    with atomic_folder(tmp_path / "folder"):
        pass
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700


def test_devices_and_pipes_get_the_bytes(tmp_path, capfd):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_outputs(outputs=[pipe, "/dev/null", "/dev/stdout"])
    with pytest.raises(UserError, match="a pipe or a device that nobody reads"):
        write_text(pipe, "one")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "one")
    assert os.read(reader, 10) == b"one" and stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(reader)
    write_text("/dev/null", "two")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    write_text("/dev/stdout", "three")
    assert capfd.readouterr().out == "three"


def test_a_pipe_that_nobody_reads_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="cannot be written"):
        files.appending(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    told = "who read this pipe has ended"
    with pytest.raises(UserError, match=told), atomic_write(tmp_path / "pipe") as file:
        os.close(reader)
        file.write("text")
        file.flush()


def test_a_stream_that_is_sent_to_a_file_is_not_emptied(tmp_path):
    with open(tmp_path / "log", "a") as log:
        log.write("before ")
        log.flush()
        write_text(f"/dev/fd/{log.fileno()}", "after")
    assert (tmp_path / "log").read_text() == "before after"


def die_while_writing(folder, what):
    if what == "file":
        with atomic_write(folder / "file") as file:
            file.write("half")
            file.flush()
            os.kill(os.getpid(), 9)
    with atomic_folder(folder / "model") as temporary:
        (temporary / "weights").write_text("half")
        os.kill(os.getpid(), 9)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_a_killed_process_left_is_not_taken_for_the_output(tmp_path, what):
    process = multiprocessing.get_context("fork").Process(
        target=die_while_writing, args=(tmp_path, what)
    )
    process.start()
    process.join()
    (left,) = listed(tmp_path)
    assert left.startswith(f".{'file' if what == 'file' else 'model'}.") and left.endswith(".tmp")
    with atomic_write(tmp_path / "file") as file, atomic_folder(tmp_path / "model"):
        file.write("meanwhile")
    assert listed(tmp_path) == [left, "file", "model"]  # in a user's folder it stays
    others = [".file.0123456789abcdef.tmp", ".other.0123456789abcdef.tmp", ".file.tmp"]
    for name in others[1:]:
        (tmp_path / name).mkdir()
    (tmp_path / others[0]).write_text("mine")
    files.remove_unfinished(tmp_path, re.compile("file|model"))  # in a command's own it goes
    assert listed(tmp_path) == sorted([*others, "file", "model"])


def race(folder, start, ended):
    start.wait()
    try:
        with atomic_folder(folder / "model") as temporary:
            (temporary / "weights").write_text(str(os.getpid()))
        ended.put("won")
    except UserError:
        ended.put("lost")


def test_of_two_that_make_a_folder_at_once_one_wins(tmp_path):
    processes = multiprocessing.get_context("fork")
    start, ended = processes.Barrier(2), processes.Queue()
    both = [processes.Process(target=race, args=(tmp_path, start, ended)) for _ in range(2)]
    for process in both:
        process.start()
    assert sorted(ended.get() for _ in both) == ["lost", "won"]
    for process in both:
        process.join()
    assert os.listdir(tmp_path) == ["model"]


def test_a_file_system_without_locks(tmp_path, monkeypatch, both_systems):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with exclusive(tmp_path) as lock, atomic_write(tmp_path / "file") as file:
        lock.check()
        file.write("two")
    with atomic_folder(tmp_path / "folder"):
        pass
    assert (tmp_path / "file").read_text() == "two"
    assert listed(tmp_path) == [LOCK_FILE, "file", "folder"]


@pytest.mark.parametrize("name", ["a\nb", "ä", "[x]*?", " ", "-", '"', "\\", "b" * 255, "ü" * 120])
def test_any_name(tmp_path, name):
    write_text(tmp_path / name, "one")
    assert (tmp_path / name).read_text() == "one" and listed(tmp_path) == [name]
    if len(name) < 200:
        write_text(tmp_path / name, "two", overwrite=True)
        with atomic_folder(tmp_path / name, overwrite=True):
            pass
        assert listed(tmp_path) == [name, f"{name}.~1~", f"{name}.~2~"]


@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_a_name_that_a_library_cannot_take(tmp_path, kind):
    with (
        pytest.raises(UserError, match="its name is not UTF-8"),
        atomic_folder(tmp_path / "\udcff"),
    ):
        raise kind("Error converting unicode string")
    assert listed(tmp_path) == []


def test_sha256(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert sha256_file(tmp_path / "empty").startswith("e3b0c44298fc1c14")
