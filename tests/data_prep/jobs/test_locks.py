"""One process a folder, and a message that says which."""

import multiprocessing
import os
import shutil
import stat
import time
from unittest import mock

import pytest

from data_prep.jobs import locks
from data_prep.jobs.locks import exclusive
from official_bert.common.errors import UserError

FORK = multiprocessing.get_context("fork")


def cannot_be_locked(folder, message="is in use by"):
    with pytest.raises(UserError, match=message), exclusive(folder):
        pass


def test_the_second_is_told_who_is_there(tmp_path):
    folder = tmp_path / "new" / "work"
    with exclusive(folder) as lock:
        lock.check()
        cannot_be_locked(folder, rf"work is in use by process {os.getpid()} on .* since")
    assert os.listdir(folder) == [locks.LOCK_FILE]
    with exclusive(folder):
        pass


def hold_and_die(folder, ready):
    with exclusive(folder):
        ready.set()
        os.kill(os.getpid(), 9)


def test_a_killed_holder_leaves_no_lock(tmp_path):
    ready = FORK.Event()
    process = FORK.Process(target=hold_and_die, args=(tmp_path, ready))
    process.start()
    process.join()
    assert ready.is_set() and (tmp_path / locks.LOCK_FILE).exists()
    with exclusive(tmp_path) as lock:
        lock.check()


def test_many_take_turns_and_never_share(tmp_path):
    with FORK.Pool(3) as pool:
        counts = pool.starmap(take_turns, [(tmp_path, 10)] * 3)
    assert sum(counts) == 30 and int((tmp_path / "count").read_text()) == 30


def take_turns(folder, turns):
    done = 0
    while done < turns:
        try:
            with exclusive(folder):
                path = folder / "count"
                count = int(path.read_text()) if path.exists() else 0
                path.write_text(str(count + 1))
                done += 1
        except UserError:
            continue
    return done


def test_a_removed_or_replaced_folder_is_noticed(tmp_path):
    for replace in (False, True):
        folder = tmp_path / f"work{replace}"
        with exclusive(folder) as lock:
            shutil.rmtree(folder)
            if replace:
                folder.mkdir()
                (folder / locks.LOCK_FILE).touch()
            with pytest.raises(UserError, match="was removed or replaced"):
                lock.check()


def test_what_cannot_be_locked_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    cannot_be_locked(tmp_path / "file", "file is a file; give a folder")
    read_only = mock.Mock(side_effect=OSError(30, "Read-only file system"))
    monkeypatch.setattr(locks.os, "open", read_only)
    cannot_be_locked(tmp_path / "work", r"cannot be written \(Read-only file system\)")
    assert locks.shared(tmp_path) is None  # a reader goes without


def test_a_full_disk_has_no_room_for_the_holders_name(tmp_path, monkeypatch):
    full = mock.Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(locks.os, "pwrite", full)
    with exclusive(tmp_path):
        cannot_be_locked(tmp_path, "is in use by another process")


def hold(folder, ready, shared):
    lock = locks.shared(folder) if shared else locks.FolderLock(folder, 1)
    ready.set()
    time.sleep(60)
    del lock


@pytest.mark.parametrize("shared", [False, True])
def test_nobody_holds_up_others_for_ever(tmp_path, shared):
    """Whoever may read a lock may hold it: others wait for a moment, and are told who it is."""
    ready = FORK.Event()
    holder = FORK.Process(target=hold, args=(tmp_path, ready, shared))
    holder.start()
    ready.wait()
    began = time.monotonic()
    cannot_be_locked(tmp_path, f"in use by process {holder.pid} on")
    assert time.monotonic() - began < 20
    holder.kill()
    holder.join()
    with exclusive(tmp_path):
        pass


def test_others_may_hold_the_lock_that_one_user_made(tmp_path):
    before = os.umask(0o077)
    try:
        with exclusive(tmp_path / "shared"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "shared" / locks.LOCK_FILE).stat().st_mode) == 0o666


def test_a_folder_is_begun_anew_under_its_lock(tmp_path, capsys):
    folder = tmp_path / "run"
    with exclusive(folder) as lock:
        (folder / "results.json").write_text("one")
        lock.begin_anew()
        lock.check()
        cannot_be_locked(folder)
    assert os.listdir(folder) == [locks.LOCK_FILE]
    assert (tmp_path / "run.~1~" / "results.json").read_text() == "one"
    assert "run is renamed to run.~1~" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["mine", "\x00\xff"])
def test_a_strangers_file_under_the_locks_name_is_refused(tmp_path, content):
    path = tmp_path / locks.LOCK_FILE
    path.write_text(content)
    for hold in (lambda: exclusive(tmp_path).__enter__(), lambda: locks.shared(tmp_path)):
        with pytest.raises(UserError, match="was not written by this project"):
            hold()
    assert path.read_text() == content
    path.unlink()
    (tmp_path / "other").write_text("process of mine")
    os.link(tmp_path / "other", path)
    cannot_be_locked(tmp_path, "was not written by this project")
    assert path.read_text() == "process of mine"


def test_readers_share_and_keep_writers_out(tmp_path):
    first, second = locks.shared(tmp_path), locks.shared(tmp_path)
    cannot_be_locked(tmp_path, rf"is in use by process {os.getpid()} on")
    first.close()
    cannot_be_locked(tmp_path)
    del second  # as when whatever read is gone
    with exclusive(tmp_path), pytest.raises(UserError, match=r"is in use by process .* since"):
        locks.shared(tmp_path)


def test_a_forked_process_that_lets_go_leaves_the_lock(tmp_path):
    lock = locks.shared(tmp_path)
    process = FORK.Process(target=lock.close)
    process.start()
    process.join()
    cannot_be_locked(tmp_path)
    lock.close()
    with exclusive(tmp_path):
        pass


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / locks.LOCK_FILE).symlink_to(tmp_path / "mine.txt")
    cannot_be_locked(tmp_path, "cannot be written")
    assert locks.shared(tmp_path) is None and (tmp_path / "mine.txt").read_text() == "mine"


def test_a_command_line_may_have_names_that_are_no_utf8(tmp_path, monkeypatch):
    monkeypatch.setattr(locks.sys, "argv", ["command", "--output=\udcff"])
    with exclusive(tmp_path), pytest.raises(UserError, match="udcff"):
        locks.shared(tmp_path)
