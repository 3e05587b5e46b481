"""The line of progress: what it promises is the rate of compiled steps."""

from types import SimpleNamespace

from experiments.training.folder import progress


def test_the_time_of_the_first_step_is_no_rate(tmp_path, monkeypatch, capsys):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr("time.time", lambda: now[0])
    run = SimpleNamespace(path=tmp_path, write=False)
    shown = progress.Progress(run, 0, 101, show=True, name="pretrain", started=1000.0)
    shown._bar._time = lambda: now[0]
    now[0] += 500  # compiled
    shown.advance(1, 32, 2048, 1e9, 9.0)
    assert shown._speed.rates() == {}
    for _ in range(50):
        now[0] += 2
        shown.advance(1, 32, 2048, 1e9, 8.0)
    assert shown._speed.rates()["steps_per_second"] == 0.5
    line = str(shown._bar)
    assert "51/101" in line and "<01:40" in line and "loss 8.000" in line
    assert "first step after 500.0 s" in capsys.readouterr().err
    shown.close()
