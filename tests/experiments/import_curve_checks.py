"""Importers on complicated logs: cut lines, ranks, resumes, several runs, steps of epochs, held-out data, Lightning's steps."""
import json
import pathlib
import random

from import_checks import PRINTED, read, refused


def check_cuts(concertina):
    """A log that ends within a line, cut lines, and two lines in one never give a number that the program did not print."""
    draw = random.Random(17)
    for name, (line, *_) in PRINTED.items():
        wanted = {step: line(step, 10.125 + step, 1e-4, 1.5, 98.25, 21000.0) for step in (1, 2, 3)}
        whole = read(concertina, "".join(text + "\n" for text in wanted.values()), devices=8 if "torchtitan" in name else None)[0]
        assert list(whole) == [1, 2, 3], name
        for cut in range(1, len(wanted[3])):
            for end in ("", "\n", "\nW0301 10:00:00 a warning\n", wanted[2] + "\n"):
                got = read(concertina, f"{wanted[1]}\n{wanted[2]}\n{wanted[3][:cut]}{end}{wanted[3][cut:] * draw.randint(0, 1) if end else ''}",
                           devices=8 if "torchtitan" in name else None)[0]
                assert all(figures.items() <= whole[step].items() for step, figures in got.items()), (name, cut, end, got)
    for program, held_out, loss in (("main.log", "s:0 tel:6.0123", 6.0123), ("llm.c on CPU", "val loss 4.123456", 4.123456),
                                    ("nanogpt", "step 0: train loss 4.2874, val loss 4.2823", 4.2823),
                                    ("torchtitan of 2025", "validate step: 1  loss:  6.9000  memory:  1.00GiB(1.00%)  tps: 2", 6.9),
                                    ("megatron", " validation loss at iteration 1 | lm loss value: 9.500000E+00 |", 9.5)):
        before = PRINTED[program][0](1, 9.0, 1e-4, 1.0, 98.25, 21000.0) + "\n"
        for cut in range(1, len(held_out) + 1):
            got = read(concertina, f"{before}{held_out[:cut]}\n")[1]
            assert list(got.values()) == [loss] * (cut == len(held_out)), (held_out[:cut], got)
            assert not read(concertina, before + held_out[:cut])[1]
    got, _, said = read(concertina, "step,loss\n1,10.912345\n2,10.812345\n3,1", "log.csv")
    assert list(got) == [1, 2] and "line 4, which may be incomplete" in said, said
    assert list(read(concertina, 'step,loss\n1,"2.5"\n2,"2.25"', "log.csv")[0]) == [1, 2]  # the quote shows that the cell is whole


def check_runs(concertina):
    """Ranks, resumes and several runs in one log, steps counted within an epoch, and steps of a line."""
    ours = lambda *arguments, **options: read(concertina, *arguments, **options)
    no = lambda *arguments, **options: refused(concertina, *arguments, **options)
    megatron, nano = PRINTED["megatron"][0], PRINTED["nanogpt"][0]
    line = lambda step, loss: megatron(step, loss, 1e-4, 1.0, 100.0, 0) + "\n"
    got, _, said = ours("".join(f"[rank{7 if step < 6 else 3}]:" + line(step, 9.0 - step / 8) for step in range(1, 11)))
    assert [row["loss"] for row in got.values()] == [9.0 - step / 8 for step in range(1, 11)] and "the same losses" not in said and "10 losses were printed by one rank" in said
    got, _, said = ours("".join(f"{at}: {nano(10 * at + 1, 9 - at, 0, 0, 98.2, 0)}\n" for at in range(1, 6)))
    assert list(got) == [11, 21, 31, 41, 51], got
    no("[rank7]:" + line(1, 9.0) + "[rank7]:" + line(2, 8.0) + "[rank3]:" + line(2, 7.5) + "[rank3]:" + line(3, 7.0), words="different losses for step 2")
    no("[rank0]:" + line(1, 9.0) + "[rank1]:" + line(1, float("nan")), words="different losses")
    run = lambda steps, loss: "".join(nano(step + 1, loss - step / 100, 0, 0, 98.2, 0) + "\n" for step in steps)
    held = lambda step, loss: f"step {step}: train loss 4.2874, val loss {loss:.4f}\n"
    got, evaluated, said = ours(held(0, 5) + run(range(0, 100, 10), 5.0) + held(90, 4) + run(range(0, 40, 10), 9.0))
    assert {step: row["loss"] for step, row in got.items()} == {1: 9.0, 11: 8.9, 21: 8.8, 31: 8.7} and not evaluated and "only the run that starts" in said, got
    got, evaluated, _ = ours(run(range(0, 100, 10), 5.0) + held(50, 7) + held(0, 8) + run(range(0, 20, 10), 9.0))
    assert list(got) == [1, 11] and evaluated == {0: 8}
    got, evaluated, said = ours(held(0, 9) + run(range(0, 100, 10), 5.0) + held(80, 4) + held(60, 3) + run(range(60, 80, 10), 6.0))
    assert [row["loss"] for row in got.values()] == [5.0, 4.9, 4.8, 4.7, 4.6, 4.5, 5.4, 5.3] and evaluated == {0: 9, 60: 3} and "as after a resume" in said, (got, evaluated)
    state = lambda steps: json.dumps({"log_history": [{"step": step, "loss": 3 + at / 8} for at, step in enumerate(steps)]}, indent=1)
    for steps, left, words in (([1, 50, 100, 150, 50, 100], [1, 50, 100], "resume"), ([*range(1, 9), 4, 8], [4, 8], "only the run that starts"),
                               ([10, 20, 30, 40, 30, 40, 50, 60], [10, 20, 30, 40, 50, 60], "resume"), ([5, 10, 15, 20, 5, 10, 7], None, ""),
                               ([1, 2, 3, 4, 5, 6, 7, 4, 5, 1, 2, 3], [1, 2, 3], "only the run that starts"), ([1, 2, 1, 2, 3, 4, 3, 4], None, "")):
        if left is None:
            no(state(steps), "trainer_state.json", words="go back")
            continue
        got, _, said = ours(state(steps), "trainer_state.json")
        assert [(step, row["loss"]) for step, row in got.items()] == [
            (step, 3 + (len(steps) - 1 - steps[::-1].index(step)) / 8) for step in left] and words in said, (steps, got, said)
    rows = lambda steps: "".join(f"{step},{9 - step / 100}\n" for step in steps)
    no("step,loss\n" + rows(range(0, 100, 10)) + rows(range(0, 40, 10)).replace("9", "8"), "log.csv", words="another run or epoch starts")
    assert list(ours("step,loss\n" + rows(range(90, -1, -10)), "log.csv")[0]) == list(range(0, 100, 10))  # newest first
    no("step,loss\n" + rows([50, 10, 40, 20, 80, 30]), "log.csv", words="go back")
    for head, row in (("epoch,iter,loss", "{},{},{}"), ("epoch,step,loss,learning_rate", "{},{},{},0.1"), ("Epoch,Step,Train Loss", "{},{},{}"), ("loss,n,step,epoch_num", "{2},0,{1},{0}")):
        for begin in (0, 1):
            text = "".join(row.format(epoch, step + begin, 9 - epoch - step / 10) + "\n" for epoch in (1, 2, 3) for step in range(4))
            no(head + "\n" + text, "log.csv", words="within an epoch")
    for points in ([(1, 10), (1, 20), (2, 10), (2, 20)], [(1, 20), (1, 20), (2, 20), (2, 20)]):
        no("".join(json.dumps({"mode": "train", "epoch": epoch, "iter": step, "loss": 3 - at / 8}) + "\n" for at, (epoch, step) in enumerate(points)),
           "log.json", words="within an epoch")
    assert list(ours(",step,loss\n0,1,3\n1,2,2.5\n2,3,2\n3,4,1.5\n4,3,1.25\n", "log.csv")[0]) == [1, 2, 3]  # row numbers are not epochs
    assert list(ours("epoch,iter,loss\n0,1,3\n0,2,2.5\n1,3,2\n1,4,1.5\n", "log.csv")[0]) == [1, 2, 3, 4]
    pathlib.Path("imports/rates.jsonl").write_text("".join(json.dumps(
        {"step": step, "loss": 5 - step / 100, "tokens_per_s": 1000, "step_ms": 500}) + "\n" for step in (0, 10, 20, 50)), encoding="utf-8")
    run = concertina.Run(concertina.import_run("imports/rates.jsonl", "imports/rates", say=lambda text: None))
    assert list(run.metrics["tokens"]) == [500, 5000, 10000, 25000], run.metrics["tokens"]


def check_launches(concertina, rounds=300):
    """Random runs of several launches, each from a checkpoint or the start: the last launch of each step counts."""
    for seed in range(rounds):
        draw = random.Random(seed)
        every, evaluate, save, first = draw.choice([1, 2, 5, 10]), draw.choice([10, 20, 50]), draw.choice([10, 20, 25]), draw.random() < 0.5
        rows, at = [], 0
        wanted = {"loss": {}, "validation_loss": {}}
        for launch in range(1, draw.randint(2, 4)):
            at = 0 if draw.random() < 0.25 else at
            wanted = {figure: {step: value for step, value in values.items() if 0 < step <= at} for figure, values in wanted.items()}
            end = at + draw.randint(8, 30) * every
            for step in range(at + 1, end + 1):
                for figure, due in (("loss", step % every == 0 or first and step == 1), ("validation_loss", step % evaluate == 0)):
                    if due:
                        rows.append({"step": step, figure: launch + step / 1e4})
                        wanted[figure][step] = launch + step / 1e4
            at = max(0, end - draw.randint(0, 2 * save)) // save * save
        kept = concertina.imports.last_run(rows, [])
        for figure, values in wanted.items():
            assert {row["step"]: row[figure] for row in concertina.imports.by_step(kept, figure, [])} == values, (seed, figure)


def check_held_out(concertina):
    """Held-out rows, folders and files are not training losses; a NaN evaluation is kept; means of an evaluation; -1."""
    ours = lambda *arguments, **options: read(concertina, *arguments, **options)
    no = lambda *arguments, **options: refused(concertina, *arguments, **options)
    row = lambda **figures: json.dumps(figures) + "\n"
    for name, train, held in (("tag", "train", "valid"), ("name", "train", "eval/lm"), ("Split", "Train", "Test"), ("training", True, False), ("is_train", 1, 0),
                              ("evaluation", 0, 1), ("isEval", False, True), ("where", "train", "validation"), ("loop", "fit", "held-out set"), ("evaluating", "no", "yes"),
                              ("loop", "fit", "Validation set 2")):
        rows = [row(step=step, loss=3.0 - step / 10, **{name: train}) for step in range(1, 9)]
        assert len(ours("".join(rows), "log.jsonl")[0]) == 8, name
        for other in ([row(step=8, loss=9.0, **{name: held})], [row(step=8, loss=9.0, meta={name: held})]):
            no("".join(rows + other), "log.jsonl", words="several kinds")
            no("".join(other), "log.jsonl", words="several kinds")
            no("".join([row(step=4, loss=3.0)] + other), "log.jsonl", words="several kinds")
    no(row(step=1, loss=2.0, where="train-en") + row(step=1, loss=3.0, where="val-en"), "log.jsonl", words="several kinds")
    assert ours(row(step=1, loss=2.0, val=1.25, note="eval follows", gpu=1), "log.jsonl")[0] == {1: {"loss": 2.0}}
    no(row(step=1, loss=2.0), "valid.jsonl", words="held-out")
    assert ours(row(step=1, loss=2.0), "valid.jsonl", columns={"validation_loss": "loss"})[:2] == ({}, {1: 2.0})
    assert ours(row(step=1, loss=2.0), "test.jsonl")[0] and ours(row(step=1, train_loss=2.0), "eval/log.jsonl")[0]
    for last in ("NaN", "Infinity"):
        got, held, said = ours('{"step":1,"loss":3.5,"val_loss":3.1}\n{"step":2,"loss":3.0,"val_loss":%s}\n' % last, "log.jsonl")
        assert held == {1: 3.1, 2: None} and "1 are not finite, including the last one" in said, (held, said)
    run = max(pathlib.Path("imports").glob("run-*"), key=lambda path: path.stat().st_mtime_ns)
    assert concertina.Run(run).validations["loss"].isna().to_list() == [False, True]
    nano = PRINTED["nanogpt"][0]
    got, held, said = ours("step 0: train loss 4.2874, val loss 4.2823\n" + "".join(nano(step, 3.0, 0, 0, 98.2, 0) + "\n" for step in (1, 101)))
    assert held == {0: 4.2823} and "the last held-out loss is from step 0; training ends at step 101" in said, said
    _, held, said = ours("step 0: train loss 4.2874, val loss 4.2823\nstep 9: train loss nan, val loss nan\n" + nano(10, 3.0, 0, 0, 98.2, 0) + "\n")
    assert held == {0: 4.2823, 9: None}
    titan = "[rank{}]:step:  {}  loss: {:8.5f}  grad_norm:  1.0000  memory:  1.00GiB(1.00%)  tps: 21,000  tflops: 1.00  mfu: 1.00%\n"
    validate = "[rank{}]:validate step: {}  loss: {:7.4f}  memory:  1.00GiB(1.00%)  tps: 2,000\n"
    got, held, said = ours("".join(titan.format(rank, 1, loss) + validate.format(rank, 1, loss) for rank, loss in ((0, -1.0), (7, 8.5))))
    assert got[1]["loss"] == 8.5 and held == {1: 8.5} and "skipped: 2 losses of -1" in said
    titan = [{"_step": step, "loss_metrics/global_avg_loss": loss, "validation_metrics/loss": loss, "throughput(tps)": 5} for step, loss in ((1, -1.0), (2, 8.5))]
    got, held, said = ours("".join(map(json.dumps, titan[1:])) + "\n" + row(**titan[0]), "log.jsonl")
    assert list(got) == [2] and held == {2: 8.5} and "skipped: 1 losses of -1" in said
    no(row(**titan[0]), "log.jsonl", words="losses of -1")
    no('"iter","a - train/loss","a - train/loss__MIN","a - train/loss__MAX"\n"0","4.2","4.2","4.2"\n', "wandb.csv", words="mean over evaluation batches")


def check_lightning(concertina):
    """Lightning's format is recognized by integer epochs and steps counted from 0, whatever the name of the loss."""
    ours = lambda *arguments, **options: read(concertina, *arguments, **options)
    for name in ("train_loss", "train/loss", "loss", "training_loss", "trainLoss", "train_loss_step", "loss_step"):
        for steps in ((49, 99, 149), (0, 1, 2), (9, 19, 49)):
            got, _, said = ours(f"epoch,step,{name},val_loss\n" + "".join(f"{at // 2},{step},2.5,\n" for at, step in enumerate(steps)), "run.csv")
            assert list(got) == [step + 1 for step in steps] and "columns of lightning" in said, (name, steps, said)
        for steps in ((50, 100, 150), (1, 2, 3), (1, 11, 21), (0, 10, 20)):
            got, _, said = ours(f"epoch,step,{name.removesuffix('_step')}\n" + "".join(f"{at // 2},{step},2.5\n" for at, step in enumerate(steps)), "run.csv")
            assert list(got) == list(steps) and "columns of plain" in said, (name, steps, said)
        assert list(ours(f"Step,Epoch,{name}\n49.0,0,2.5\n99.0,0,2.5\n", "run.csv")[0]) == [50, 100]
        refused(concertina, f"epoch,step,{name}\n0,137,2.5\n0,138,2.5\n", "run.csv", words="--program lightning or")
    assert list(ours("epoch,step,loss\n0,137,2.5\n0,138,2.5\n", "run.csv", program="plain")[0]) == [137, 138]
