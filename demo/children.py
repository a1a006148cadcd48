"""The processes of the demo: started, watched and ended by their process ids."""
import ctypes
import os
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Trouble(Exception):
    """The demo cannot go on; the text says why."""


def die_with_parent():
    """Runs in the child: if the demo itself is killed, nothing may be left behind."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    def __init__(self, name, argv, folder, env):
        self.name = name
        self.log_path = os.path.join(folder, f"{name.replace(' ', '-')}.log")
        with open(self.log_path, "ab") as log:
            # Its own session: Ctrl-C is for the demo alone, which then ends the others in turn.
            self.popen = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                          stderr=log, start_new_session=True, preexec_fn=die_with_parent)

    @property
    def running(self):
        return self.popen.poll() is None

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_log(self, text, times=1, timeout=30):
        """Until `text` is in the log; a child that ends before is trouble."""
        end = time.monotonic() + timeout
        while self.log().count(text) < times:
            self.check()
            if time.monotonic() > end:
                raise self.trouble(f"did not start within {timeout} s")
            time.sleep(0.01)

    def check(self):
        if not self.running:
            raise self.trouble(f"ended by itself with status {self.popen.returncode}")

    def trouble(self, what):
        tail = "\n".join("    " + line for line in self.log().splitlines()[-15:])
        return Trouble(f"{self.name} {what}" + (f"; the end of its log:\n{tail}" if tail else ""))

    def freeze(self):
        """Returns when it really stands still (or has ended)."""
        self.popen.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.popen.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self):
        self.popen.send_signal(signal.SIGCONT)

    def kill(self):
        self.popen.kill()
        self.popen.wait()

    def term(self):
        if self.running:
            self.popen.terminate()

    def wait(self, timeout=30):
        """Its end after term(), which should be a good one."""
        try:
            status = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise self.trouble(f"did not end within {timeout} s of TERM") from None
        if status != 0:
            raise self.trouble(f"ended with status {status}")
