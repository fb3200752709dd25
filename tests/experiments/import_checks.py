"""Importers on the log formats of ten programs: every number is exact or rejected. Samples have each program's own format."""
import json
import pathlib
import random
import re
import sqlite3

TITAN = "[rank0]:[titan] 2025-12-17 01:18:26,708 - root - INFO - "
MEGATRON = (" [2025-03-01 10:00:00.123456] iteration {:8d}/{:8d} | consumed samples: {:12d} | elapsed time per iteration (ms): {:.1f} |"
            " throughput per GPU (TFLOP/s/GPU): {:.1f} | learning rate: {:.6E} | global batch size: {:5d} | lm loss: {:.6E} |"
            " mtp_1 loss: {:.6E} | loss scale: {:.1f} | grad norm: {:.3f} | number of skipped iterations: {:3d} |"
            " number of nan iterations: {:3d} |")
# What each program prints for (step, loss, lr, norm, ms, rate), in its own format string, and the metrics read from it.
PRINTED = {
    "nanogpt": (lambda s, x, lr, g, ms, r: f"iter {s - 1}: loss {x:.4f}, time {ms:.2f}ms, mfu {-100:.2f}%", ".4f", {"step_ms": ".2f"}),
    "nanogpt of 2022": (lambda s, x, lr, g, ms, r: f"iter {s - 1}: loss {x:.4f}, time {ms:.2f}ms", ".4f", {"step_ms": ".2f"}),
    "llm.c": (lambda s, x, lr, g, ms, r: "step %4d/%d | loss %7.6f (%+.2fz)| norm %6.4f (%+.2fz)| lr %.2e | %.2f ms | %.1f%% bf16 MFU | %.0f tok/s"
              % (s, 19560, x, float("nan"), g, -0.5, lr, ms, 42.6, r), ".6f", {"grad_norm": ".4f", "lr": ".2e", "step_ms": ".2f"}),
    "llm.c in Python": (lambda s, x, lr, g, ms, r: f"step {s:4d}/50 | train loss {x:.6f} | norm {g:.4f} | lr {lr:.2e} | ({ms:.2f} ms | {r:.0f} tok/s)",
                        ".6f", {"grad_norm": ".4f", "lr": ".2e", "step_ms": ".2f", "tokens_per_s": ".0f"}),
    "llm.c on CPU": (lambda s, x, lr, g, ms, r: "step %d: train loss %f (took %f ms)" % (s - 1, x, ms), ".6f", {"step_ms": ".6f"}),
    "main.log": (lambda s, x, lr, g, ms, r: "s:%d trl:%.4f lr:%.6f norm:%.2f" % (s - 1, x, lr, g), ".4f", {"lr": ".6f", "grad_norm": ".2f"}),
    "main.log in Python": (lambda s, x, lr, g, ms, r: "s:%d trl:%f" % (s - 1, x), ".6f", {}),
    "torchtitan": (lambda s, x, lr, g, ms, r: f"{TITAN}\x1b[31mstep: {s:2}  \x1b[32mloss: {x:8.5f}  \x1b[33mgrad_norm: {g:7.4f}  \x1b[36mmemory: {10.3:5.2f}GiB"
                   f"({11:.2f}%)  \x1b[34mtps: {round(r):,}  \x1b[36mtflops: {1234.5:,.2f}  \x1b[35mmfu: N/A\x1b[39m", ".5f", {"grad_norm": ".4f"}),
    "torchtitan of 2025": (lambda s, x, lr, g, ms, r: f"{TITAN}step: {s:2}  loss: {x:7.4f}  memory: {87.87:5.2f}GiB({62.89:.2f}%)  tps: {round(r):,}  "
                           f"tflops: {47.71:,.2f}  mfu: {4.82:.2f}%", ".4f", {}),
    "torchtitan of 2024": (lambda s, x, lr, g, ms, r: f"{TITAN}step: {s:2}  loss: {x:7.4f}  memory: {8.0:5.2f}GiB({9:.2f}%)  wps: {round(r):,}  mfu: {4.8:.2f}%",
                           ".4f", {}),
    "megatron": (lambda s, x, lr, g, ms, r: MEGATRON.format(s, 500, 32 * s, ms, 123.4, lr, 32, x, 9.9, 1.0, g, 0, 0), ".6E",
                 {"lr": ".6E", "grad_norm": ".3f", "step_ms": ".1f"}),
}
WORDS = ["val", "eval", "test", "mean", "total", "best", "running", "EMA", "local", "aux", "kloss", "s", "us", "MiB", "nats", "epoch"]


def read(concertina, text, name="log.txt", **options):
    """Returns the metrics and validations of an imported text as plain dicts by step, and its messages."""
    path, run = pathlib.Path("imports", name), pathlib.Path("imports", f"run-{random.getrandbits(60)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(text, bytes):
        text = text.encode()
    path.write_bytes(text)
    said = []
    concertina.import_run(path, run, say=said.append, **options)
    lines = lambda file: {line.pop("batches", 1) and line.pop("step"): line for line in map(json.loads, (run / file).read_text(encoding="utf-8").splitlines())}
    # check_rates() tests the steps that a line represents.
    return lines("metrics.jsonl"), {step: line["loss"] for step, line in lines("events.jsonl").items()}, "\n".join(said)


def refused(concertina, text, name="log.txt", words="", **options):
    try:
        got = read(concertina, text, name, **options)
    except (ValueError, OSError) as error:
        assert words in str(error), (words, str(error))
    else:
        raise AssertionError(f"not refused: {text!r}: {got}")


def check_printed(concertina, rounds=20):
    """Numbers in the program's format are read exactly; a line with another word or unit is never a training loss."""
    draw = random.Random(7)
    mutations = 0
    for name, (line, loss_format, formats) in PRINTED.items():
        for _ in range(rounds):
            rows = [(step, draw.uniform(0.1, 12) * 10 ** draw.randint(-2, 1), 10 ** draw.uniform(-5, -2), draw.uniform(0, 99),
                     draw.uniform(1, 90000), draw.uniform(1, 3e6)) for step in sorted(draw.sample(range(1, 30000), 5))]
            got, held_out, said = read(concertina, "Starting\n" + "\n".join(line(*row) for row in rows) + "\n")
            assert list(got) == [row[0] for row in rows] and not held_out, (name, got)
            for step, loss, lr, norm, ms, rate in rows:
                figures = {"lr": lr, "grad_norm": norm, "step_ms": ms, "tokens_per_s": rate}
                wanted = {"loss": float(format(loss, loss_format)), **{key: float(format(figures[key], kind)) for key, kind in formats.items()}}
                assert got[step] == wanted, (name, got[step], wanted)
            assert "skipped: 1 other lines" in said, said
            text = line(*rows[0])
            words = [match for match in re.finditer(r"[A-Za-z/%]{2,}", text) if match[0] not in ("nan", "N/A")
                     and match.start() >= text.find("INFO - ") + 7 * ("INFO - " in text)]
            for _ in range(4):
                at = draw.choice(words)
                mutated = text[:at.start()] + draw.choice([draw.choice(WORDS), at[0] + draw.choice(WORDS)]) + text[at.end():]
                if mutated == text or "|" in text and "mtp_1" in text and "lm" not in at[0] and at[0] not in ("iteration", "loss"):
                    continue  # Megatron's other fields are skipped by name
                mutations += 1
                try:
                    got, _, _ = read(concertina, "\n".join([line(*rows[1]), mutated]))
                except ValueError:
                    continue
                assert rows[0][0] not in got or "| lm loss: " in mutated, (name, mutated, got)
    assert mutations > 10 * rounds


def check_meanings(concertina):
    """Held-out, summary, resumed and interleaved lines; values per device, means and counters."""
    ours = lambda *arguments, **options: read(concertina, *arguments, **options)
    no = lambda *arguments, **options: refused(concertina, *arguments, **options)
    got, held, _ = ours("step 0: train loss 4.2874, val loss 4.2823\niter 0: loss 4.2664, time 20342.10ms, mfu -100.00%\n"
                        "iter 10: loss 3.2063, time 98.20ms, mfu 2.01%\n")
    assert got == {1: {"loss": 4.2664}, 11: {"loss": 3.2063, "step_ms": 98.2}} and held == {0: 4.2823}
    step = "step {:4d}/9 | loss {:7.6f} (+nanz)| norm 15.0000 (+nanz)| lr 1.00e-06 | 10.00 ms | 1.0% bf16 MFU | 100 tok/s\n"
    got, held, said = ours("val loss 11.000000\n" + step.format(1, 10.9) + "evaluating HellaSwag: 0/10\rval loss 10.200000\n"
                           + step.format(2, 10.1) + step.format(3, 9.0) + "val loss 9.500000\n" + step.format(5, 9.9) + "val loss 9.125030517578125\n")
    assert held == {0: 11.0, 1: 10.2, 5: 9.125030517578125} and "tokens_per_s" not in got[1] and "1 held-out losses without a known step" in said, (held, said)
    assert ours("s:0 tel:11.0000\ns:0 trl:10.9000\ns:250 eval:0.3012\ns:250 tel:6.4000\n")[:2] == ({1: {"loss": 10.9}}, {0: 11.0, 250: 6.4})
    titan = "step: {:2}  loss: {:7.4f}  grad_norm: 1.0000  memory: 1.00GiB(1.00%)  tps: 1,000  tflops: 1.00  mfu: 1.00%\n"
    got, held, said = ours(titan.format(10, 7.0001) + "validate step: 10  loss:  6.9000  memory:  1.00GiB(1.00%)  tps: 2,000\n")
    assert got == {10: {"loss": 7.0001, "grad_norm": 1.0}} and held == {10: 6.9} and "--devices" in said
    assert ours(titan.format(10, 7.0), devices=8)[0][10]["tokens_per_s"] == 8000
    ranks = "".join(f"[rank{rank}]:{titan.format(step, -1.0 if rank == 0 else 9.0 - step)}" for step in (1, 2, 3) for rank in (0, 6, 7))
    got, _, said = ours(ranks)
    assert [row["loss"] for row in got.values()] == [8.0, 7.0, 6.0] and "3 losses of -1" in said and "ranks 6, 7" in said
    no("".join(f"[rank{rank}]:{titan.format(at, 9.0 - rank)}" for at in (1, 2) for rank in (0, 1)), words="different losses for step 1")
    no("".join(titan.format(step, 9.0 - rank) for step in (1, 2, 3) for rank in (0, 1)), words="two values")
    got, _, said = ours("".join(titan.format(step, 9.0 - at) for at, step in enumerate((1, 2, 3, 2, 3, 4))))
    assert [row["loss"] for row in got.values()] == [9.0, 6.0, 5.0, 4.0] and "skipped: 2 earlier lines" in said
    no("context: valid  " + titan.format(1, 3.0), words="no losses by step")
    line = lambda s, x, skipped=0: MEGATRON.format(s, 100, 32 * s, 100.0, 1.0, 1e-4, 32, x, 9.9, 1.0, 0.5, skipped, 0) + "\n"
    held_out = " validation loss at iteration {} | lm loss value: {:.6E} | lm loss PPL: 8.181144E+03 | \n"
    got, held, said = ours(line(10, 10.0) + "-" * 80 + "\n" + held_out.format(10, 9.5) + line(11, 0.0, 1)
                           + held_out.format("20 on test set", 1.0) + held_out.format("20 on validation set", 2.0))
    assert list(got) == [10] and held == {10: 9.5} and "means since the previous line" in said and "on test set" in said, (got, held)
    no("{'loss': 2.3, 'grad_norm': 1.0, 'learning_rate': 5e-05, 'epoch': 0.1}\n{'train_runtime': 1.0, 'train_loss': 2.0, 'epoch': 1.0}\n",
       words="2 printed rows of transformers without a step")
    state = {"global_step": 4, "log_history": [{"epoch": 0.5, "grad_norm": 1.5, "learning_rate": 5e-5, "loss": 2.0, "step": 2},
             {"epoch": 1.0, "loss": 1.5, "learning_rate": 0.0, "step": 4}, {"epoch": 1.0, "eval_loss": 1.4, "eval_runtime": 1.0, "step": 4},
             {"epoch": 1.0, "step": 4, "train_loss": 1.75, "train_runtime": 3.0, "total_flos": 1e9}]}
    got, held, said = ours(json.dumps(state, indent=2), "trainer_state.json")
    assert got == {2: {"loss": 2.0, "lr": 5e-5, "grad_norm": 1.5}, 4: {"loss": 1.5, "lr": 0.0}} and held == {4: 1.4} and "train_loss" in said


def check_tables(concertina):
    """CSV in three locales, JSON lines, exports of W&B, Lightning's CSV, MLflow's stores."""
    ours = lambda *arguments, **options: read(concertina, *arguments, **options)
    no = lambda *arguments, **options: refused(concertina, *arguments, **options)
    draw = random.Random(11)
    groups = lambda number, mark, decimal: f"{number:,.3f}".replace(",", "\0").replace(".", decimal).replace("\0", mark)
    for delimiter, mark, decimal in ((",", "", "."), (";", ".", ","), (";", "\u202f", ","), (";", "\u00a0", ","), (",", "'", "."), ("\t", "\u2019", ".")):
        for coding in ("utf-8", "utf-8-sig", "utf-16"):
            values = {1000 * step: round(draw.uniform(0, 5000), 3) for step in range(1, 9)} | {9000: 0.125}
            rows = [delimiter.join(("Step", "Train Loss"))] + [
                f"{step:,}".replace(",", mark) + delimiter + groups(value, mark, decimal) for step, value in values.items()]
            got = ours(("\r\n".join(rows) + "\r\n").encode(coding), "log.csv")[0]
            assert {step: row["loss"] for step, row in got.items()} == values, (mark, decimal, got)
    assert ours('step,loss\n1,"1,234"\n', "log.csv", decimal=",")[0] == {1: {"loss": 1.234}}
    assert ours('step,loss\n1,"1,234"\n', "log.csv", decimal=".")[0] == {1: {"loss": 1234}}
    assert ours("step,loss\n1,1.234\n", "log.csv")[0] == {1: {"loss": 1.234}}
    for text, words in (('step,loss\n1,"1,234"\n', "--decimal"), ("step;loss\n1;1.234\n", "--decimal"), ("step;loss;lr\n1;3,5;0.5\n", "two decimal"),
                        ("step,loss\n1,3,5\n", "3 cells"), ("step,loss\n1,3.2 nats\n", "not a number"), ("step,loss\n1,42%\n", "not a number"),
                        ("step,loss,train/loss\n1,2,3\n", "may each be loss"), ("step,value\n1,2\n", "no losses"), ("step,loss\n1.5,2.0\n", "not a step"),
                        ("Wall time,Step,Value\n1,1,2\n", "no losses"), ("step,loss\n1,1_000\n", "not a number"), ("step,loss\n1,1,2\n", "cells"),
                        ("epoch,step,train_loss\n0,137,2.5\n0,138,2.4\n", "--program lightning"), ("epoch,step,loss\n0,99,2.5\n1,199,2.4\n", "per epoch"),
                        ("step,split,loss\n1,train,2.0\n1,val,2.1\n", "several kinds"), ("step,loss,phase\n1,2.0,eval\n", "several kinds"),
                        ("step;loss;lr\n1;2,345;0.0001\n", "--decimal"), ("step\tloss\n1.000\t2\n2.000\t3\n", "--decimal"),
                        ("rank,step,loss\n0,1,2.0\n1,1,2.1\n", "several kinds"), ("step,loss\0\n1,2\n", "NUL"), ("_step,train/loss\n1,2.0\n", "count calls"), ("step,loss\n", "no rows")):
        no(text, "log.csv", words=words)
    no("step,loss\n1,2\n", "log.csv", words="--column los=x", columns={"los": "x"})
    got, held, said = ours('{"step":1,"loss":4.5,"lr":1e-3,"timestamp":1767225600.5}\n{"step":2,"loss":NaN,"val_loss":NaN}\n{"step":2,"val":{"loss":4.4}}\n{"st', "log.jsonl",
                           columns={"validation_loss": "val/loss"})
    assert got[1] == {"loss": 4.5, "lr": 1e-3, "time": "2026-01-01T00:00:00.500Z"} and got[2]["loss"] is None and held == {2: 4.4} and "1 lines" in said
    no('{"step":1,"loss":"1,234"}\n', "log.jsonl", words="--decimal")
    no('{"step":1,"loss":true}\n', "log.jsonl", words="not a number")
    no('{"step":1,"loss":2.0,"mode":"train"}\n{"step":1,"loss":2.5,"mode":"val"}\n', "log.jsonl", words="several kinds")
    assert list(ours('{"step":1,"loss":2.0,"mode":"train"}\n{"step":2,"loss":1.5,"mode":"train"}\n', "log.jsonl")[0]) == [1, 2]
    export = '"{0}","a - b - train/loss","a - b - train/loss__MIN","a - b - train/loss__MAX"\n"10","2.5","2.5","2.5"\n"20","2.0","1.5","2.5"\n'
    got, _, said = ours(export.format("train/global_step"), "wandb.csv")
    assert got == {10: {"loss": 2.5}} and "1 values that represent several" in said
    assert list(ours(export.format("trainer/global_step"), "wandb.csv")[0]) == [11]
    no(export.format("Step"), "wandb.csv", words="count calls")
    assert list(ours(export.format("Step"), "wandb.csv", columns={"step": "Step"})[0]) == [10]
    no('"Step","a - loss","a - loss__MIN","a - loss__MAX","b - loss","b - loss__MIN","b - loss__MAX"\n1,2,2,2,3,3,3\n', "wandb.csv", words="--run")
    lightning = "epoch,step,train_loss_epoch,train_loss_step,val_loss\n0,49,,2.5,\n0,99,,2.25,\n0,99,,,2.0\n0,99,2.375,,\n"
    got, held, said = ours(lightning, "metrics.csv", program="lightning")
    assert got == {50: {"loss": 2.5}, 100: {"loss": 2.25}} and held == {100: 2.0} and "train_loss_epoch" in said
    pathlib.Path("imports/version_0").mkdir()
    assert list(ours(lightning, "version_0/metrics.csv")[0]) == [50, 100]
    check_mlflow(concertina)


def check_mlflow(concertina):
    rows = [("loss", 3.0, 1767225600000, "r", 1, 0), ("loss", 0.0, 1767225601000, "r", 2, 1), ("loss", 2.0, 1767225602000, "r", 3, 0),
            ("eval_loss", 2.5, 1767225603000, "r", 3, 0), ("learning_rate", 0.1, 1767225600000, "r", 1, 0), ("epoch", 0.1, 1767225600000, "r", 1, 0),
            ("train_loss", 2.7, 1767225604000, "r", 3, 0)]
    with sqlite3.connect("imports/mlflow.db") as store:
        store.execute("create table runs (run_uuid text, name text, lifecycle_stage text)")
        store.execute("create table metrics (key text, value real, timestamp integer, run_uuid text, step integer, is_nan integer)")
        store.executemany("insert into runs values (?, ?, ?)", [("r", "first", "active"), ("gone", "old", "deleted")])
        store.executemany("insert into metrics values (?, ?, ?, ?, ?, ?)", rows)
    folder = pathlib.Path("imports/mlruns/1/r")
    (folder / "metrics").mkdir(parents=True)
    (folder / "meta.yaml").write_text("run_name: first\n", encoding="utf-8")
    for key, value, time, _, step, nan in rows:
        with open(folder / "metrics" / key, "a", encoding="utf-8") as file:
            file.write(f"{time} {'nan' if nan else value} {step}\n")
    for source in ("mlflow.db", "mlruns"):
        run = concertina.import_run(f"imports/{source}", f"imports/run-{source}", say=lambda text: None)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        assert [line["loss"] for line in lines] == [3.0, None, 2.0] and lines[0]["lr"] == 0.1 and "lr" not in lines[2], lines
        assert json.loads((run / "events.jsonl").read_text(encoding="utf-8"))["loss"] == 2.5
    (folder.parent / "gone/metrics").mkdir(parents=True)
    (folder.parent / "gone/metrics/loss").write_text("1 9.0 1\n", encoding="utf-8")
    (folder.parent / "gone/meta.yaml").write_text("lifecycle_stage: deleted\nrun_name: gone\n", encoding="utf-8")
    concertina.import_run("imports/mlruns", "imports/not-deleted", say=lambda text: None)
    said = []
    for text, words in (("1767225600000 3.0\n", "line 1: '1767225600000 3.0' is not"), ("1 3.0 10 a b\n2 2.5 20\n3 2.25 3", "")):
        (folder / "metrics/loss").write_text(text, encoding="utf-8")
        try:
            run = concertina.import_run("imports/mlruns", "imports/lines", say=said.append)
        except ValueError as error:
            assert words and words in str(error), error
    assert [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()] == [10, 20] and "incomplete" in "".join(said)
    with sqlite3.connect("imports/mlflow.db") as store:
        store.execute("update runs set lifecycle_stage = 'active'")
    try:
        concertina.import_run("imports/mlflow.db", "imports/two")
    except ValueError as error:
        assert "--run" in str(error)
    else:
        raise AssertionError("two runs of MLflow were not refused")


def check_boards(concertina):
    """Event files: each program's names, values per device or means, and steps that a resume repeats."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    def board(name, points, **options):
        for launch, part in enumerate(points):
            writer = EventFileWriter(f"imports/{name}", filename_suffix=f".{launch}")
            for at, (tag, step, value) in enumerate(part):
                writer.add_event(Event(wall_time=1767225600 + 100 * launch + at, step=step,
                                       summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])))
            writer.close()
        said = []
        run = concertina.Run(concertina.import_run(f"imports/{name}", f"imports/run-{name}", say=said.append, **options))
        return run.metrics, run.validations, "\n".join(said)
    titan = [(tag, step, value) for step in (1, 2) for tag, value in (("loss_metrics/global_avg_loss", 4.5 - step), ("loss_metrics/global_max_loss", 9.0),
             ("throughput(tps)", 1000.0), ("time_metrics/end_to_end(s)", 0.5))] + [("validation_metrics/loss", 2, 4.0)]
    metrics, held, said = board("titan", [titan], devices=8)
    assert list(metrics["loss"]) == [3.5, 2.5] and list(metrics["tokens_per_s"]) == [8000, 8000] and list(held["loss"]) == [4.0] and "step_ms" not in metrics
    metrics, _, said = board("titan8", [titan])
    assert "tokens_per_s" not in metrics and "--devices" in said
    metrics, held, said = board("hf", [[("train/loss", 10, 3.0), ("train/learning_rate", 10, 0.5), ("train/epoch", 10, 0.5), ("eval/loss", 10, 2.5),
                                        ("train/loss", 20, 2.0), ("train/train_loss", 20, 2.5)], [("train/loss", 20, 2.25), ("train/loss", 30, 1.5)]])
    assert metrics["loss"].to_dict() == {10: 3.0, 20: 2.25, 30: 1.5} and list(held["loss"]) == [2.5] and "train/train_loss" in said, metrics
    metrics, held, _ = board("lightning", [[("hp_metric", 0, -1.0), ("train_loss_step", 49, 2.5), ("epoch", 49, 0.0), ("train_loss_epoch", 99, 2.0), ("val_loss", 99, 1.5)]])
    assert metrics["loss"].to_dict() == {50: 2.5} and held["loss"].to_dict() == {100: 1.5}
    metrics, held, said = board("light", [[("train/loss", 49, 2.5), ("epoch", 49, 0.0), ("train/loss", 99, 2.0), ("epoch", 99, 0.0), ("val/loss", 99, 1.5)]])
    assert list(metrics.index) == [50, 100] and list(held.index) == [100] and "columns of lightning" in said
    for name in ("eval", "exp/val", "validation", "my_test", "run/loss_val"):
        for place in (name, name.split("/", maxsplit=1)[0]):
            try:
                if place == name:
                    board(name, [[("loss", 10, 3.0)]])
                concertina.import_run(f"imports/{place}", "imports/parent")
            except ValueError as error:
                assert "held-out" in str(error), error
            else:
                raise AssertionError(f"{place} was accepted")
    assert list(board("test_run", [[("loss", 10, 3.0), ("val_loss", 10, 3.5)]])[0]["loss"]) == [3.0]
    assert list(board("eval2", [[("loss", 10, 3.0)]], columns={"validation_loss": "loss"})[1]["loss"]) == [3.0]
    try:
        board("epochs", [[(tag, step, value) for epoch in range(3) for step in range(4) for tag, value in (("loss", 9.0 - epoch), ("learning_rate", 0.5), ("epoch", epoch))]])
    except ValueError as error:
        assert "another run or epoch" in str(error), error
    else:
        raise AssertionError("steps of epochs were accepted")
    try:
        board("ranks0", [[("loss_metrics/global_avg_loss", step, -1.0) for step in (1, 2)]])
    except ValueError as error:
        assert "2 losses of -1" in str(error), error
    else:
        raise AssertionError("losses of -1 were accepted")
    metrics, held, _ = board("megatron", [[("lm loss", 5, 2.5), ("lm loss vs samples", 160, 2.5), ("learning-rate", 5, 0.25), ("lm loss validation", 5, 2.0)]])
    assert metrics["loss"].to_dict() == {5: 2.5} and list(metrics["lr"]) == [0.25] and list(held["loss"]) == [2.0]
