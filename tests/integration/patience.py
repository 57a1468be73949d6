"""Runs a program and ends it when it hangs, by what it does and not by the clock: a machine that does
other work beside it takes many times as long, and that is no fault of the program.

A program hangs when it and its children have used no processor time for a while, and runs wild when
they have used more than they may."""
import os
import subprocess
import sys
import tempfile

IDLE_S = 120
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def processor_s(session):
    """Of all processes of a session, and of their children that have ended."""
    total = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"/proc/{entry.name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[3]) == session:
            total += sum(map(int, fields[11:15]))
    return total * TICK_S


def run(arguments, limit_s, env=None):
    """As subprocess.run with text, and without input. `limit_s` is of processor time. The test ends
    with what the program said if the program has to be ended."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(arguments, env=env, text=True, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, start_new_session=True)
        used, idle = 0.0, 0
        while True:
            try:
                process.wait(1)
                break
            except subprocess.TimeoutExpired:
                before, used = used, processor_s(process.pid)
                idle = idle + 1 if used <= before else 0
            if idle >= IDLE_S or used > limit_s:
                why = (f"hung: no processor time for {IDLE_S} s" if idle >= IDLE_S else
                       f"took more than {limit_s} s of processor time")
                os.killpg(process.pid, 9)
                process.wait()
                said = "".join(read_back(file)[-2000:] for file in (out, err))
                sys.exit(f"{' '.join(map(str, arguments))[:500]}: {why}; it said: {said}")
        return subprocess.CompletedProcess(arguments, process.returncode, read_back(out),
                                           read_back(err))


def read_back(file):
    file.seek(0)
    return file.read()
