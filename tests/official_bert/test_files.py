"""Files and folders appear whole or not at all, and in place of nothing that is not ours."""

import errno
import fcntl
import multiprocessing
import os
import resource
import stat

import pytest

from official_bert.common import files, manifests, system
from official_bert.common.checksums import sha256_file, state
from official_bert.common.claims import claim
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_folder, atomic_write, write_text
from official_bert.common.locks import LOCK_FILE, exclusive


@pytest.fixture(params=[True, False], ids=["renameat2", "older systems"])
def both_systems(request, monkeypatch):
    """Whether the system knows how to rename without replacing, and to exchange."""
    if not request.param:
        monkeypatch.setattr(system, "_renameat2", lambda: None)


def listed(folder):
    return sorted(name for name in os.listdir(folder) if name != manifests.FILE)


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
    write_text(path, "again")  # it is ours
    assert path.read_text() == "again" and listed(path.parent) == ["file.txt"]


@pytest.mark.parametrize("error", [RuntimeError(), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "file.txt"
    write_text(path, "old")
    with pytest.raises(type(error)), atomic_write(path) as file:
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


def test_a_folder_is_replaced_only_on_request(tmp_path, both_systems):
    folder = tmp_path / "model"
    for content in ("one", "two"):
        with atomic_folder(folder, overwrite=content == "two") as temporary:
            (temporary / "deep").mkdir()
            (temporary / "deep" / "file").write_text(content)
        assert (folder / "deep" / "file").read_text() == content
    with pytest.raises(UserError, match="--overwrite"), atomic_folder(folder):
        pass
    assert (folder / "deep" / "file").read_text() == "two" and os.listdir(tmp_path) == ["model"]
    folder.rename(tmp_path / "moved")  # what is ours is known by the folder itself
    with atomic_folder(tmp_path / "moved", overwrite=True):
        pass
    assert listed(tmp_path / "moved") == []


def test_what_others_put_into_a_folder_keeps_it(tmp_path, both_systems):
    with atomic_folder(tmp_path / "model") as temporary:
        (temporary / "weights").write_text("ours")
    for name, make in (
        ("notes.txt", lambda path: path.write_text("mine")),
        ("link", lambda path: path.symlink_to(tmp_path)),
        ("pipe", os.mkfifo),
        ("empty", lambda path: path.mkdir()),
    ):
        path = tmp_path / "model" / name
        make(path)
        with (
            pytest.raises(UserError, match=f"holds what this project did not write .*{name}"),
            atomic_folder(tmp_path / "model", overwrite=True),
        ):
            pass
        assert os.path.lexists(path) and (tmp_path / "model" / "weights").read_text() == "ours"
        path.rmdir() if name == "empty" else path.unlink()


def test_files_of_others_are_not_replaced(tmp_path, both_systems):
    path = tmp_path / "mine.txt"
    for content in ("mine", ""):
        path.write_text(content)
        for write in (write_text, lambda path, text: files.appending(path)):
            with pytest.raises(UserError, match=r"mine.txt exists, and this project did not"):
                write(path, "new")
        with pytest.raises(UserError, match="exists already"), atomic_folder(path, overwrite=True):
            pass
        manifests.remove(path)
        assert path.read_text() == content and os.listdir(tmp_path) == ["mine.txt"]
    write_text(tmp_path / "other.txt", "ours")
    path.unlink()
    (tmp_path / "other.txt").rename(path)  # what is moved is not known any more
    with pytest.raises(UserError, match="did not write"):
        write_text(path, "new")


def test_what_comes_meanwhile_stays(tmp_path, both_systems, monkeypatch):
    path, move = tmp_path / "file", system.to_new_name

    def comes_at_the_last_moment(old, new):
        path.write_text("mine")
        move(old, new)

    for early in (True, False):
        if not early:
            monkeypatch.setattr(system, "to_new_name", comes_at_the_last_moment)
        with pytest.raises(UserError, match="meanwhile|did not write"), atomic_write(path) as file:
            file.write("ours")
            if early:
                path.write_text("mine")
        assert path.read_text() == "mine" and listed(tmp_path) == ["file"]
        with pytest.raises(UserError, match="did not write it"):
            write_text(path, "ours")
        path.unlink()
    path = tmp_path / "folder"
    with pytest.raises(UserError, match="exists already"), atomic_folder(path):
        path.mkdir()
        (path / "file").write_text("mine")
    assert os.listdir(path) == ["file"] and listed(tmp_path) == ["folder"]


def test_what_another_process_of_ours_writes_meanwhile_is_ours(tmp_path, both_systems, monkeypatch):
    path, exists = tmp_path / "file", os.path.lexists
    with monkeypatch.context() as patch, atomic_write(path) as file:
        file.write("second")
        write_text(path, "first")
        late = iter([True] * 2)  # the name was still free when it was looked at
        patch.setattr(os.path, "lexists", lambda p: not next(late, False) and exists(p))
    assert path.read_text() == "second" and listed(tmp_path) == ["file"]
    write_text(path, "third")


def test_links_are_written_through(tmp_path, both_systems):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "file")  # to nothing yet
    for text in ("one", "two"):
        write_text(tmp_path / "link", text)
        assert (tmp_path / "disk" / "file").read_text() == text
        assert os.readlink(tmp_path / "link") == str(tmp_path / "disk" / "file")
    (tmp_path / "disk" / "mine").write_text("mine")
    (tmp_path / "other").symlink_to(tmp_path / "disk" / "mine")
    with pytest.raises(UserError, match="other exists, and this project did not write it"):
        write_text(tmp_path / "other", "new")
    (tmp_path / "model").symlink_to(tmp_path / "disk" / "model")
    for text in ("one", "two"):
        with atomic_folder(tmp_path / "model", overwrite=True) as temporary:
            (temporary / "file").write_text(text)
        assert (tmp_path / "disk" / "model" / "file").read_text() == text
        assert (tmp_path / "model").is_symlink()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match="loop"):
        write_text(tmp_path / "loop", "new")
    with pytest.raises(UserError, match="no folder"):
        claim(folders=[tmp_path / "loop"])


def test_modes_and_hard_links_are_kept(tmp_path):
    path = tmp_path / "file"
    write_text(path, "a longer text")
    os.chmod(path, 0o640)
    write_text(path, "one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    os.link(path, tmp_path / "other")
    write_text(path, "two")
    assert (tmp_path / "other").read_text() == "two" and path.samefile(tmp_path / "other")
    (tmp_path / "folder").mkdir(0o700)
    with atomic_folder(tmp_path / "folder"):
        pass
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700


def test_an_output_is_replaced_with_overwrite_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    claim(outputs=["out.tsv", "-", "", "/dev/null", "/dev/stdout"])
    write_text("out.tsv", "one")
    claim(files=["out.tsv"])
    claim(outputs=["out.tsv"], overwrite=True)
    with pytest.raises(UserError, match="^out.tsv exists already; .* or pass --overwrite$"):
        claim(outputs=["out.tsv"])
    (tmp_path / "mine.tsv").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(UserError, match="mine.tsv exists, and this project did not write it"):
            claim(outputs=["mine.tsv"], overwrite=overwrite)


def test_devices_and_pipes_get_the_bytes(tmp_path, capfd):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    claim(files=[pipe, "/dev/null", "/dev/stdout"])
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
    with pytest.raises(UserError, match="pipe is a pipe or a device that nobody reads"):
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
def test_what_a_killed_process_left_goes(tmp_path, what):
    process = multiprocessing.get_context("fork").Process(
        target=die_while_writing, args=(tmp_path, what)
    )
    process.start()
    process.join()
    assert len(listed(tmp_path)) == 1
    with atomic_write(tmp_path / "other") as file, atomic_folder(tmp_path / "folder"):
        file.write("meanwhile")
        claim(files=[tmp_path / "file"], folders=[tmp_path / "model"])
        assert len(listed(tmp_path)) == 2  # of this living process
    assert listed(tmp_path) == ["folder", "other"]


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


@pytest.mark.parametrize(
    ("source", "output", "kind"),
    [
        ("a.txt", "a.txt", "files"),
        ("a.txt", "link.txt", "files"),
        ("a.txt", "hard.txt", "files"),
        ("a.txt", "sub/../a.txt", "files"),
        ("books", "books", "work"),
        ("books/b.txt", "books", "work"),
        ("books", "books/out", "work"),
        ("books", "linked", "work"),
        ("linked", "books/out", "folders"),
        ("books", "books/b.txt", "files"),
        ("books/b.txt", ".", "work"),
        ("*.txt", "new.txt", "files"),  # would be read the next time
        ("books/**/*", "books/deep/er.txt", "files"),
        ("linked/*", "books/new.txt", "files"),
    ],
)
def test_outputs_stand_apart_from_inputs(tmp_path, monkeypatch, source, output, kind):
    monkeypatch.chdir(tmp_path)
    for folder in ("books", "sub"):
        os.mkdir(folder)
    for name in ("a.txt", "books/b.txt"):
        with open(name, "w") as file:
            file.write("mine")
    os.symlink("a.txt", "link.txt")
    os.symlink("books", "linked")
    os.link("a.txt", "hard.txt")
    with pytest.raises(UserError, match=r"input"):
        claim([source], **{kind: [output]}, overwrite=True)
    claim(["a.txt", "", "-", "gs://x/y", "no_such_model"], files=["new.txt", "-", ""], work=["sub"])
    claim(["*.txt", "books/*"], files=["new.tsv", "books/deep/er.txt"], work=["sub"])
    with pytest.raises(UserError, match="input"):
        claim(["gs://x/y/z"], work=["gs://x/y"])
    for name in (manifests.FILE, LOCK_FILE):
        with pytest.raises(UserError, match="this project keeps"):
            claim(folders=[f"sub/{name}/"])


def test_outputs_are_two_files_on_a_disk_that_ignores_case(tmp_path, monkeypatch):
    pairs = [("A.txt", "a.txt"), ("deep/É", "deep/e\u0301"), ("deep/a", "Deep/A")]
    for pair in pairs:  # two names here
        claim(files=[tmp_path / name for name in pair], folders=[tmp_path / "model"])
    assert listed(tmp_path) == []

    def exists(path):  # on such a disk
        folder, name = os.path.split(path)
        found = os.listdir(folder) if os.path.isdir(folder) else []
        return name.casefold() in map(str.casefold, found)

    monkeypatch.setattr(os.path, "exists", exists)
    for one, other in pairs:
        with pytest.raises(UserError, match="are one file on this disk"):
            claim(outputs=[tmp_path / one], folders=[tmp_path / other])
    claim(files=[tmp_path / "A.txt", tmp_path / "b.txt"])
    assert listed(tmp_path) == []


def test_a_file_system_without_locks(tmp_path, monkeypatch, both_systems):
    """Writes go on there; what may be another process's is not cleaned up."""

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    write_text(tmp_path / "file", "one")
    with exclusive(tmp_path), atomic_write(tmp_path / "file") as file:
        manifests.clean(tmp_path)
        file.write("two")
    with atomic_folder(tmp_path / "folder"):
        claim(files=[tmp_path / "file"], folders=[tmp_path / "folder"])
    assert (tmp_path / "file").read_text() == "two" and listed(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_a_name_that_a_library_cannot_take(tmp_path, kind):
    with (
        pytest.raises(UserError, match="its name is no UTF-8"),
        atomic_folder(tmp_path / "\udcff"),
    ):
        raise kind("Error converting unicode string")
    assert listed(tmp_path) == []


def test_sha256(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert sha256_file(tmp_path / "empty").startswith("e3b0c44298fc1c14")
